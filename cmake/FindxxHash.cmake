# Finds xxHash and gives xxHash::xxhash. pkg-config is asked where to look; without it the usual places are searched.
# Sets xxHash_FOUND and xxHash_VERSION.
# SPDX-FileCopyrightText: the troupe authors
# SPDX-License-Identifier: BSD-3-Clause
if(TARGET xxHash::xxhash)
  set(xxHash_FOUND TRUE)
  return()
endif()
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(PC_xxHash QUIET libxxhash)
endif()
find_path(xxHash_INCLUDE_DIR xxhash.h HINTS ${PC_xxHash_INCLUDE_DIRS} DOC "Folder that holds xxhash.h")
find_library(xxHash_LIBRARY xxhash HINTS ${PC_xxHash_LIBRARY_DIRS} DOC "libxxhash")
mark_as_advanced(xxHash_INCLUDE_DIR xxHash_LIBRARY)
set(xxHash_VERSION "${PC_xxHash_VERSION}")

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(xxHash
  REQUIRED_VARS xxHash_LIBRARY xxHash_INCLUDE_DIR
  VERSION_VAR xxHash_VERSION
  REASON_FAILURE_MESSAGE "on Debian: libxxhash-dev")

if(xxHash_FOUND)
  add_library(xxHash::xxhash UNKNOWN IMPORTED)
  set_target_properties(xxHash::xxhash PROPERTIES
    IMPORTED_LOCATION "${xxHash_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${xxHash_INCLUDE_DIR}")
endif()
