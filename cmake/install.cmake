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

get_property(connectors GLOBAL PROPERTY TROUPE_CONNECTORS)
if(connectors)
  install(TARGETS ${connectors} EXPORT troupeTargets)
  set(TROUPE_PACKAGE_NEEDS_GSTREAMER OFF)
  if(TARGET troupe_connect_gstreamer)
    set(TROUPE_PACKAGE_NEEDS_GSTREAMER ON)
  endif()
  install(DIRECTORY connectors DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/troupe" FILES_MATCHING PATTERN "*.hpp")
endif()

install(EXPORT troupeTargets NAMESPACE troupe:: DESTINATION "${package_dir}")
configure_package_config_file(cmake/troupeConfig.cmake.in "${PROJECT_BINARY_DIR}/troupeConfig.cmake"
  INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/troupeConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/troupeConfig.cmake" "${PROJECT_BINARY_DIR}/troupeConfigVersion.cmake"
              cmake/FindCAF.cmake cmake/FindGStreamer.cmake cmake/FindHwloc.cmake cmake/FindLZ4.cmake
              cmake/FindOpenBLAS.cmake cmake/FindxxHash.cmake
  DESTINATION "${package_dir}")
install(FILES LICENSE README.md CHANGELOG.md DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY docs DESTINATION "${CMAKE_INSTALL_DOCDIR}" FILES_MATCHING PATTERN "*.md")

# For programs that are built without CMake. The static library does not bring its libraries along, so all are named.
set(pc_folder "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
if(IS_ABSOLUTE "${pc_folder}")
  set(prefix "${CMAKE_INSTALL_PREFIX}")
else()
  # Found from where the file lies, so that the prefix may be moved.
  file(RELATIVE_PATH prefix "/${pc_folder}" "/")
  string(REGEX REPLACE "/$" "" prefix "\${pcfiledir}/${prefix}")
endif()
foreach(folder IN ITEMS LIBDIR INCLUDEDIR)
  string(TOLOWER "${folder}" variable)
  set(${variable} "${CMAKE_INSTALL_${folder}}")
  if(NOT IS_ABSOLUTE "${${variable}}")
    set(${variable} "\${prefix}/${${variable}}")
  endif()
endforeach()
set(libs "")
if(NOT BUILD_SHARED_LIBS)
  get_property(accelerators GLOBAL PROPERTY TROUPE_ACCELERATOR_LIBRARIES)
  foreach(library IN ITEMS CAF::core Hwloc::hwloc OpenSSL::SSL OpenSSL::Crypto LZ4::lz4 xxHash::xxhash ${accelerators})
    if(TARGET ${library})
      string(APPEND libs " -L$<TARGET_LINKER_FILE_DIR:${library}> -l:$<TARGET_LINKER_FILE_NAME:${library}>")
    else()
      string(APPEND libs " -l${library}")
    endif()
  endforeach()
  string(APPEND libs " -lrt -pthread")
endif()
configure_file(cmake/troupe.pc.in "${PROJECT_BINARY_DIR}/troupe.pc.generate" @ONLY)
file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/troupe.pc" INPUT "${PROJECT_BINARY_DIR}/troupe.pc.generate")
install(FILES "${PROJECT_BINARY_DIR}/troupe.pc" DESTINATION "${pc_folder}")

if(PROJECT_IS_TOP_LEVEL)
  add_custom_target(uninstall VERBATIM COMMENT "Taking away what was installed last"
    COMMAND "${CMAKE_COMMAND}" "-DMANIFEST=${PROJECT_BINARY_DIR}/install_manifest.txt"
      -P "${PROJECT_SOURCE_DIR}/cmake/uninstall.cmake")
endif()
