# find_package(culprit) gives culprit::profile.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(ZLIB)
include(${CMAKE_CURRENT_LIST_DIR}/culpritTargets.cmake)
