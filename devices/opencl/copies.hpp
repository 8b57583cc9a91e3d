// What this file is for: strided copies and fills as OpenCL commands.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "devices/accelerator.hpp"
#include "devices/opencl/codes.hpp"

namespace troupe::devices::opencl {

using counts = std::array<index_t, rank_max>;

void enqueue_copy_in(cl_command_queue, device_pointer to, const strides&, const std::byte* from, const strides&,
                     const counts&, std::size_t element, code_check&);
void enqueue_copy_out(cl_command_queue, std::byte* to, const strides&, device_pointer from, const strides&,
                      const counts&, std::size_t element, code_check&);
void enqueue_copy(cl_command_queue, device_pointer to, const strides&, device_pointer from, const strides&,
                  const counts&, std::size_t element, code_check&);
/// Elements of 1 to 32 bytes.
void enqueue_fill(cl_command_queue, device_pointer to, const std::byte* value, std::size_t element, std::size_t count,
                  code_check&);

}  // namespace troupe::devices::opencl
