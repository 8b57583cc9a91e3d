// What this file is for: peers whose libraries cannot be in one process with the others': they run steps in their own.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "../contender.hpp"

namespace bench {

/// OpenMP tasks by LLVM's compiler and library. Null: they were not there when this program was built.
std::unique_ptr<contender> make_libomp();
/// MPI, a process for each thread, by shared memory. Null as well.
std::unique_ptr<contender> make_local_mpi();

}  // namespace bench
