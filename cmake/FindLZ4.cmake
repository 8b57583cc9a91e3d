# Finds lz4 and gives LZ4::lz4. pkg-config is asked where to look; without it the usual places are searched.
# Sets LZ4_FOUND and LZ4_VERSION.
# SPDX-FileCopyrightText: the troupe authors
# SPDX-License-Identifier: BSD-3-Clause
if(TARGET LZ4::lz4)
  set(LZ4_FOUND TRUE)
  return()
endif()
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(PC_LZ4 QUIET liblz4)
endif()
find_path(LZ4_INCLUDE_DIR lz4.h HINTS ${PC_LZ4_INCLUDE_DIRS} DOC "Folder that holds lz4.h")
find_library(LZ4_LIBRARY lz4 HINTS ${PC_LZ4_LIBRARY_DIRS} DOC "liblz4")
mark_as_advanced(LZ4_INCLUDE_DIR LZ4_LIBRARY)
set(LZ4_VERSION "${PC_LZ4_VERSION}")

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LZ4
  REQUIRED_VARS LZ4_LIBRARY LZ4_INCLUDE_DIR
  VERSION_VAR LZ4_VERSION
  REASON_FAILURE_MESSAGE "on Debian: liblz4-dev")

if(LZ4_FOUND)
  add_library(LZ4::lz4 UNKNOWN IMPORTED)
  set_target_properties(LZ4::lz4 PROPERTIES
    IMPORTED_LOCATION "${LZ4_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${LZ4_INCLUDE_DIR}")
endif()
