# A clang++ beside the compiler of the build: for the fuzz targets, and for LLVM's OpenMP as a peer of troupe-bench.
# SPDX-FileCopyrightText: the troupe authors
# SPDX-License-Identifier: BSD-3-Clause
include_guard(GLOBAL)
find_program(TROUPE_CLANG NAMES clang++ clang++-19 clang++-18 clang++-17 clang++-16 clang++-15 clang++-14
  DOC "A clang++, for the fuzz targets and LLVM's OpenMP")
