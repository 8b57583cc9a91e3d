# Finds the C++ Actor Framework and gives CAF::core, the name its own 1.x package uses.
#
# CAF 1.x brings a package of its own, which is taken when there is one. CAF 0.17 (Debian 12) brings neither a
# CMake package nor a pkg-config file, so it is found by header and library.
# Sets CAF_FOUND and CAF_VERSION.
# SPDX-FileCopyrightText: the troupe authors
# SPDX-License-Identifier: BSD-3-Clause
if(TARGET CAF::core)
  set(CAF_FOUND TRUE)
  return()
endif()
find_package(CAF CONFIG QUIET COMPONENTS core)
if(TARGET CAF::core)
  set(CAF_FOUND TRUE)
  return()
endif()

find_path(CAF_INCLUDE_DIR caf/all.hpp DOC "Folder that holds caf/all.hpp")
find_library(CAF_CORE_LIBRARY caf_core DOC "libcaf_core")
mark_as_advanced(CAF_INCLUDE_DIR CAF_CORE_LIBRARY)

set(CAF_VERSION "")
if(CAF_INCLUDE_DIR AND EXISTS "${CAF_INCLUDE_DIR}/caf/config.hpp")
  file(STRINGS "${CAF_INCLUDE_DIR}/caf/config.hpp" line REGEX "^#define CAF_VERSION [0-9]+")
  if(line MATCHES "([0-9]+)$")
    math(EXPR major "${CMAKE_MATCH_1} / 10000")
    math(EXPR minor "${CMAKE_MATCH_1} / 100 % 100")
    math(EXPR patch "${CMAKE_MATCH_1} % 100")
    set(CAF_VERSION "${major}.${minor}.${patch}")
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CAF
  REQUIRED_VARS CAF_CORE_LIBRARY CAF_INCLUDE_DIR
  VERSION_VAR CAF_VERSION
  REASON_FAILURE_MESSAGE "on Debian: libcaf-dev")

if(CAF_FOUND)
  find_package(Threads REQUIRED)
  add_library(CAF::core UNKNOWN IMPORTED)
  set_target_properties(CAF::core PROPERTIES
    IMPORTED_LOCATION "${CAF_CORE_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${CAF_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES Threads::Threads)
endif()
