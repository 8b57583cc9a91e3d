# Finds FFTW with doubles and gives FFTW3::FFTW3. pkg-config is asked where to look; without it the usual places are
# searched.
# Sets FFTW3_FOUND and FFTW3_VERSION.
# SPDX-FileCopyrightText: the troupe authors
# SPDX-License-Identifier: BSD-3-Clause
if(TARGET FFTW3::FFTW3)
  set(FFTW3_FOUND TRUE)
  return()
endif()
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(PC_FFTW3 QUIET fftw3)
endif()
find_path(FFTW3_INCLUDE_DIR fftw3.h HINTS ${PC_FFTW3_INCLUDE_DIRS} DOC "Folder that holds fftw3.h")
find_library(FFTW3_LIBRARY fftw3 HINTS ${PC_FFTW3_LIBRARY_DIRS} DOC "fftw3")
mark_as_advanced(FFTW3_INCLUDE_DIR FFTW3_LIBRARY)
set(FFTW3_VERSION "${PC_FFTW3_VERSION}")

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(FFTW3
  REQUIRED_VARS FFTW3_LIBRARY FFTW3_INCLUDE_DIR
  VERSION_VAR FFTW3_VERSION
  REASON_FAILURE_MESSAGE "on Debian: libfftw3-dev")

if(FFTW3_FOUND)
  add_library(FFTW3::FFTW3 UNKNOWN IMPORTED)
  set_target_properties(FFTW3::FFTW3 PROPERTIES
    IMPORTED_LOCATION "${FFTW3_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${FFTW3_INCLUDE_DIR}")
endif()
