# Debian packages by CPack: culprit (the program, its manual page and completions), culprit-dev (culprit::profile for C++
# engines), culprit-mpi (the module for several ranks of the laboratory, so that nobody else gets MPI). What they depend on
# is what dpkg-shlibdeps finds. `cpack -G DEB` in a build folder; scripts/package does all of it.
include(GNUInstallDirs)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/culprit RENAME copyright COMPONENT tool)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/culprit-dev RENAME copyright COMPONENT profile)
install(FILES CHANGELOG.md docs/guide.md docs/profile.md docs/json.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/culprit COMPONENT tool)
set(CPACK_COMPONENTS_ALL tool profile)
if(TARGET culprit_mpi)
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/culprit-mpi RENAME copyright COMPONENT mpi)
  list(APPEND CPACK_COMPONENTS_ALL mpi)
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME culprit)
set(CPACK_PACKAGE_VENDOR Culprit)
set(CPACK_PACKAGE_CONTACT "The authors of Culprit")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "names what makes a step of LLM decode slow")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_TOOL_PACKAGE_NAME culprit)
set(CPACK_DEBIAN_TOOL_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_TOOL_PACKAGE_SUGGESTS "culprit-mpi, culprit-dev")
set(CPACK_COMPONENT_TOOL_DESCRIPTION
  "Reads the trace that the profiler of SGLang, vLLM or any engine on PyTorch writes, proves the cause of its slow decode steps with figures, rules the others out and predicts what a fix buys.")
set(CPACK_DEBIAN_PROFILE_PACKAGE_NAME culprit-dev)
set(CPACK_DEBIAN_PROFILE_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PROFILE_PACKAGE_DEPENDS zlib1g-dev)
set(CPACK_COMPONENT_PROFILE_DESCRIPTION
  "Header and static library with which a C++ engine records its own steps for culprit, and the files that find_package(culprit) needs.")
set(CPACK_DEBIAN_MPI_PACKAGE_NAME culprit-mpi)
set(CPACK_DEBIAN_MPI_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "culprit (= ${PROJECT_VERSION}), openmpi-bin")
set(CPACK_COMPONENT_MPI_DESCRIPTION "Lets `culprit lab` share a model among processes (--tp, --ep).")
include(CPack)
