# Finds hwloc and gives Hwloc::hwloc. pkg-config is asked where to look; without it the usual places are searched,
# so that a user of the installed library needs no pkg-config.
# Sets Hwloc_FOUND and Hwloc_VERSION.
# SPDX-FileCopyrightText: the troupe authors
# SPDX-License-Identifier: BSD-3-Clause
if(TARGET Hwloc::hwloc)
  set(Hwloc_FOUND TRUE)
  return()
endif()
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(PC_HWLOC QUIET hwloc)
endif()
find_path(Hwloc_INCLUDE_DIR hwloc.h HINTS ${PC_HWLOC_INCLUDE_DIRS} DOC "Folder that holds hwloc.h")
find_library(Hwloc_LIBRARY hwloc HINTS ${PC_HWLOC_LIBRARY_DIRS} DOC "libhwloc")
mark_as_advanced(Hwloc_INCLUDE_DIR Hwloc_LIBRARY)

set(Hwloc_VERSION "${PC_HWLOC_VERSION}")
if(NOT Hwloc_VERSION AND Hwloc_INCLUDE_DIR)
  file(GLOB_RECURSE configs "${Hwloc_INCLUDE_DIR}/hwloc/autogen/config.h")
  foreach(config IN LISTS configs)
    file(STRINGS "${config}" line REGEX "^#define HWLOC_VERSION \"")
    if(line MATCHES "\"([0-9.]+)")
      set(Hwloc_VERSION "${CMAKE_MATCH_1}")
    endif()
  endforeach()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Hwloc
  REQUIRED_VARS Hwloc_LIBRARY Hwloc_INCLUDE_DIR
  VERSION_VAR Hwloc_VERSION
  REASON_FAILURE_MESSAGE "on Debian: libhwloc-dev")

if(Hwloc_FOUND)
  add_library(Hwloc::hwloc UNKNOWN IMPORTED)
  set_target_properties(Hwloc::hwloc PROPERTIES
    IMPORTED_LOCATION "${Hwloc_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${Hwloc_INCLUDE_DIR}")
endif()
