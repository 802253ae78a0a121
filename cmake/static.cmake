# CULPRIT_STATIC: a program for machines that have none of our libraries. What has an archive is linked from it; glibc stays
# shared, for `culprit lab` opens a module (MPI) at run time, which a static glibc cannot do well.
option(CULPRIT_STATIC "Link statically what has an archive: libstdc++, libgcc, fmt, SQLite, ISA-L, zlib, zstd" OFF)

macro(culprit_prefer_archives)
  if(CULPRIT_STATIC)
    set(culprit_suffixes ${CMAKE_FIND_LIBRARY_SUFFIXES})
    set(CMAKE_FIND_LIBRARY_SUFFIXES .a ${culprit_suffixes})
    add_link_options(-static-libstdc++ -static-libgcc)
  endif()
endmacro()

macro(culprit_archives_found)
  if(CULPRIT_STATIC)
    find_library(CULPRIT_FMT_ARCHIVE libfmt.a REQUIRED)  # fmt's own package names the shared library
    get_target_property(configurations fmt::fmt IMPORTED_CONFIGURATIONS)
    foreach(configuration ${configurations})
      set_target_properties(fmt::fmt PROPERTIES IMPORTED_LOCATION_${configuration} ${CULPRIT_FMT_ARCHIVE}
        IMPORTED_SONAME_${configuration} "")
    endforeach()
    set_property(TARGET SQLite::SQLite3 APPEND PROPERTY INTERFACE_LINK_LIBRARIES m)
    set(CMAKE_FIND_LIBRARY_SUFFIXES ${culprit_suffixes})
  endif()
endmacro()
