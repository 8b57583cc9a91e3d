# Finds OpenBLAS with its C interface, and LAPACKE on top of it; gives OpenBLAS::OpenBLAS (cblas.h, lapacke.h).
# A module of our own, because CMake's FindBLAS wants a C or Fortran compiler and any BLAS will do for it: the
# kernels here turn OpenBLAS's own threads off, which needs OpenBLAS by name.
# SPDX-FileCopyrightText: the troupe authors
# SPDX-License-Identifier: BSD-3-Clause
if(TARGET OpenBLAS::OpenBLAS)
  set(OpenBLAS_FOUND TRUE)
  return()
endif()
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(PC_OPENBLAS QUIET openblas)
endif()
find_path(OpenBLAS_INCLUDE_DIR openblas_config.h
  HINTS ${PC_OPENBLAS_INCLUDE_DIRS} PATH_SUFFIXES openblas-pthread openblas DOC "Folder that holds OpenBLAS's cblas.h")
find_library(OpenBLAS_LIBRARY openblas
  HINTS ${PC_OPENBLAS_LIBRARY_DIRS} PATH_SUFFIXES openblas-pthread openblas DOC "libopenblas")
find_path(LAPACKE_INCLUDE_DIR lapacke.h PATH_SUFFIXES lapacke openblas DOC "Folder that holds lapacke.h")
find_library(LAPACKE_LIBRARY lapacke DOC "liblapacke")
mark_as_advanced(OpenBLAS_INCLUDE_DIR OpenBLAS_LIBRARY LAPACKE_INCLUDE_DIR LAPACKE_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OpenBLAS
  REQUIRED_VARS OpenBLAS_LIBRARY OpenBLAS_INCLUDE_DIR LAPACKE_LIBRARY LAPACKE_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "on Debian: libopenblas-pthread-dev and liblapacke-dev")

if(OpenBLAS_FOUND)
  add_library(OpenBLAS::OpenBLAS UNKNOWN IMPORTED)
  set_target_properties(OpenBLAS::OpenBLAS PROPERTIES
    IMPORTED_LOCATION "${LAPACKE_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${OpenBLAS_INCLUDE_DIR};${LAPACKE_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES "${OpenBLAS_LIBRARY}")
endif()
