// What this file is for: kernels of one OpenCL device: built from text, asked for their parameters, launched.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "devices/accelerator.hpp"
#include "devices/opencl/codes.hpp"
#include "devices/rtc/text.hpp"

namespace troupe::devices::opencl {

class programs {
 public:
  /// What its functions check codes with must stay as long.
  programs(cl_context, cl_device_id, code_check&);

  kernel_id load(const kernel_source&);
  void launch(cl_command_queue, kernel_id, const launch_shape&, std::span<const kernel_argument>);

 private:
  struct entry {
    std::string name;
    kernel_handle kernel;
    std::vector<rtc::parameter> parameters;
    std::size_t group_max = 1;
  };

  cl_program program_of(const kernel_source&);
  std::string log_of(cl_program) const;
  std::vector<rtc::parameter> parameters_of(cl_kernel, const kernel_source&);
  void set_arguments(const entry&, std::span<const kernel_argument>);
  [[noreturn]] void bad(const entry&, const std::string& text) const;
  [[noreturn]] void refuse(const entry&, const std::string& text) const;

  cl_context context_;
  cl_device_id device_;
  code_check& check_;
  std::size_t base_align_ = 1;  // bytes
  std::array<std::size_t, 3> items_max_{1, 1, 1};
  std::map<std::string, program_handle, std::less<>> programs_;  // by text
  std::vector<entry> entries_;
  std::map<std::pair<std::string, std::string>, kernel_id> ids_;  // by entry and text
  std::vector<memory_handle> views_;                              // of one launch
};

}  // namespace troupe::devices::opencl
