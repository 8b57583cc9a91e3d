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
  /// The code_check, which all functions check codes with, must stay as long.
  programs(cl_context, cl_device_id, code_check&);

  /// Has what kernels touch outside of their arrays noted from now on.
  void check() { checks_ = true; }
  kernel_id load(const kernel_source&);
  void launch(cl_command_queue, kernel_id, const launch_shape&, std::span<const kernel_argument>);
  std::uint64_t launched() const { return launched_; }
  std::string complaint(std::uint64_t first, std::uint64_t last);

 private:
  // The note of what one launch does outside of one array: in the device's memory, and once it has ended here.
  struct note {
    std::string kernel, array;
    memory_handle there;
    rtc::access_note here;
  };
  struct entry {
    std::string name;
    kernel_handle kernel;
    std::vector<rtc::parameter> parameters;  // without those for notes
    std::string kernel_name;                 // as people know it
    bool checked = false;
    std::size_t group_max = 1;
  };

  cl_program program_of(const kernel_source&);
  std::string log_of(cl_program) const;
  std::vector<rtc::parameter> parameters_of(cl_kernel, const kernel_source&);
  void set_arguments(const entry&, std::span<const kernel_argument>);
  void set_note(const entry&, cl_uint argument, const std::string& array);
  void read_notes(cl_command_queue);
  [[noreturn]] void bad(const entry&, const std::string& text) const;
  [[noreturn]] void refuse(const entry&, const std::string& text) const;

  bool checks_ = false;
  std::uint64_t launched_ = 0;
  std::multimap<std::uint64_t, note> notes_;  // by the number of the launch; those that nobody has asked for
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
