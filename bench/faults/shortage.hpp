// Workers that run out of something while they work.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "aftermath.hpp"

namespace bench {

// All return the longest time in which no task ended. Tasks may run on the worker or here.

/// Arrays need four times what it has. More: of the tasks, the share that it ran, in percent.
aftermath out_of_memory();
/// The system gives it no more address space; it may end of that. More: the same share.
aftermath out_of_address_space();
/// Memory and disk together have room for three eighths. More: the same share. Throws `missing` without the right to
/// mount.
aftermath out_of_disk();
/// Strangers have taken all its descriptors. More: from their going until another node gets in by it.
aftermath out_of_descriptors();

}  // namespace bench
