# Installing: headers, the library, and a CMake package that finds what the static library links privately.
# SPDX-FileCopyrightText: the troupe authors
# SPDX-License-Identifier: BSD-3-Clause
include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/troupe")

install(DIRECTORY include/troupe DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.hpp")
install(TARGETS troupe EXPORT troupeTargets)

get_property(TROUPE_PACKAGE_NEEDS_CUDA GLOBAL PROPERTY TROUPE_PACKAGE_NEEDS_CUDA)
set(TROUPE_PACKAGE_NEEDS_BLAS OFF)
if(TARGET troupe_algorithms)
  set_target_properties(troupe_algorithms PROPERTIES EXPORT_NAME algorithms)
  install(TARGETS troupe_algorithms EXPORT troupeTargets)
  # <troupe/algorithms/...> for a user; these headers include <troupe/...> only, so they may move.
  install(DIRECTORY algorithms DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/troupe" FILES_MATCHING PATTERN "*.hpp")
  if(OpenBLAS_FOUND)
    set(TROUPE_PACKAGE_NEEDS_BLAS ON)
  endif()
endif()

install(EXPORT troupeTargets NAMESPACE troupe:: DESTINATION "${package_dir}")
configure_package_config_file(cmake/troupeConfig.cmake.in "${PROJECT_BINARY_DIR}/troupeConfig.cmake"
  INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/troupeConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/troupeConfig.cmake" "${PROJECT_BINARY_DIR}/troupeConfigVersion.cmake"
              cmake/FindCAF.cmake cmake/FindHwloc.cmake cmake/FindLZ4.cmake cmake/FindOpenBLAS.cmake cmake/FindxxHash.cmake
  DESTINATION "${package_dir}")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
