# CULPRIT_STATIC: a program for machines that have none of our libraries. What has an archive is linked from it, fmt is
# compiled in from its headers, and zlib stands in for ISA-L, of which Debian has no archive: gzip traces are read slower.
# glibc stays shared, for `culprit lab` opens a module (MPI) at run time, which a static glibc cannot do well.
option(CULPRIT_STATIC "Link statically what has an archive: libstdc++, libgcc, SQLite, zlib, zstd" OFF)
set(CULPRIT_FMT fmt::fmt)
if(CULPRIT_STATIC)
  set(CULPRIT_FMT fmt::fmt-header-only)
endif()

macro(culprit_prefer_archives)
  if(CULPRIT_STATIC)
    set(culprit_suffixes ${CMAKE_FIND_LIBRARY_SUFFIXES})
    set(CMAKE_FIND_LIBRARY_SUFFIXES .a ${culprit_suffixes})
    add_link_options(-static-libstdc++ -static-libgcc)
  endif()
endmacro()

macro(culprit_archives_found)
  if(CULPRIT_STATIC)
    set_property(TARGET SQLite::SQLite3 APPEND PROPERTY INTERFACE_LINK_LIBRARIES m)
    set(CMAKE_FIND_LIBRARY_SUFFIXES ${culprit_suffixes})
  endif()
endmacro()
