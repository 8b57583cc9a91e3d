// What this file is for: building programs with their log kept, and launches checked before the driver sees them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "devices/opencl/programs.hpp"

#include <algorithm>

#include "devices/kernels/kernels.hpp"

namespace troupe::devices::opencl {

programs::programs(cl_context context, cl_device_id device, code_check& check)
    : context_(context), device_(device), check_(check) {
  cl_uint bits = 8;
  check_(clGetDeviceInfo(device_, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof bits, &bits, nullptr), "clGetDeviceInfo");
  base_align_ = std::max<std::size_t>(1, bits / 8);
  cl_uint dimensions = 0;
  check_(clGetDeviceInfo(device_, CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS, sizeof dimensions, &dimensions, nullptr),
         "clGetDeviceInfo");
  std::vector<std::size_t> most(std::max<std::size_t>(dimensions, 3));
  check_(
      clGetDeviceInfo(device_, CL_DEVICE_MAX_WORK_ITEM_SIZES, dimensions * sizeof(std::size_t), most.data(), nullptr),
      "clGetDeviceInfo");
  std::copy_n(most.begin(), 3, items_max_.begin());
}

kernel_id programs::load(const kernel_source& wanted) {
  const auto key = std::make_pair(std::string(wanted.entry), std::string(wanted.text));
  if (const auto at = ids_.find(key); at != ids_.end()) return at->second;
  kernel_source source = wanted;
  source.checked = checks_ && rtc::parameters_of(source.text, source.entry).has_value();
  const cl_program program = program_of(source);
  entry e;
  e.name = source.entry;
  e.kernel_name = source.name.empty() ? source.entry : source.name;
  e.checked = source.checked;
  cl_int code = CL_SUCCESS;
  e.kernel = kernel_handle(clCreateKernel(program, e.name.c_str(), &code));
  if (meaning(code) == errc::compile_failed)
    throw error(errc::compile_failed, rtc::no_function(source, check_.device()));
  check_(code, "clCreateKernel");
  e.parameters = parameters_of(e.kernel.get(), source);
  check_(clGetKernelWorkGroupInfo(e.kernel.get(), device_, CL_KERNEL_WORK_GROUP_SIZE, sizeof e.group_max, &e.group_max,
                                  nullptr),
         "clGetKernelWorkGroupInfo");
  entries_.push_back(std::move(e));
  return ids_[key] = static_cast<kernel_id>(entries_.size() - 1);
}

cl_program programs::program_of(const kernel_source& source) {
  const std::string known = (source.checked ? "checked " : "") + std::string(source.text);
  if (const auto at = programs_.find(known); at != programs_.end()) return at->second.get();
  const std::string text = rtc::with_preludes(kernels::prelude_opencl, source);
  const char* begin = text.data();
  const std::size_t length = text.size();
  cl_int code = CL_SUCCESS;
  program_handle program(clCreateProgramWithSource(context_, 1, &begin, &length, &code));
  check_(code, "clCreateProgramWithSource");
  code = clBuildProgram(program.get(), 1, &device_, "-cl-std=CL1.2 -cl-kernel-arg-info", nullptr, nullptr);
  if (meaning(code) == errc::compile_failed)
    throw error(errc::compile_failed,
                rtc::does_not_compile(source, check_.device(), code_text(code), log_of(program.get())));
  check_(code, "clBuildProgram");
  return programs_.emplace(known, std::move(program)).first->second.get();
}

std::string programs::log_of(cl_program program) const {
  std::size_t size = 0;
  if (clGetProgramBuildInfo(program, device_, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size) != CL_SUCCESS) return {};
  std::string log(size, '\0');
  if (clGetProgramBuildInfo(program, device_, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr) != CL_SUCCESS) return {};
  return log.substr(0, log.find('\0'));
}

// The driver knows which are pointers; the sizes of values come from the text, where it shows them.
std::vector<rtc::parameter> programs::parameters_of(cl_kernel kernel, const kernel_source& source) {
  cl_uint n = 0;
  check_(clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof n, &n, nullptr), "clGetKernelInfo");
  const auto read = rtc::parameters_of(source.text, source.entry);
  if (source.checked) return *read;
  std::vector<rtc::parameter> out(n);
  if (read && read->size() == n) out = *read;
  for (cl_uint i = 0; i < n; ++i) {
    cl_kernel_arg_address_qualifier where = CL_KERNEL_ARG_ADDRESS_PRIVATE;
    const cl_int code = clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof where, &where, nullptr);
    if (code == CL_KERNEL_ARG_INFO_NOT_AVAILABLE && read && read->size() == n) break;
    check_(code, "clGetKernelArgInfo");
    out[i].is_memory = where != CL_KERNEL_ARG_ADDRESS_PRIVATE;
  }
  return out;
}

void programs::launch(cl_command_queue queue, kernel_id id, const launch_shape& shape,
                      std::span<const kernel_argument> arguments) {
  if (id >= entries_.size())
    throw error(errc::bad_argument, check_.device() + ": launch: no kernel has the id " + std::to_string(id));
  const entry& e = entries_[id];
  rtc::check_arguments(arguments, e.parameters, e.name);
  std::array<std::size_t, 3> global{}, local{};
  std::size_t in_group = 1;
  for (std::size_t d = 0; d < 3; ++d) {
    local[d] = shape.group[d];
    if (local[d] == 0) bad(e, "a group has at least one work-item in each dimension");
    if (local[d] > items_max_[d])
      refuse(e, "a group may have " + std::to_string(items_max_[d]) + " work-items in dimension " + std::to_string(d) +
                    " on this device");
    in_group *= local[d];
    if (in_group > e.group_max)
      refuse(e, "a group may have " + std::to_string(e.group_max) + " work-items on this device");
    global[d] = (shape.items[d] + local[d] - 1) / local[d] * local[d];
  }
  if (global[0] == 0 || global[1] == 0 || global[2] == 0) return;
  set_arguments(e, arguments);
  const cl_int code =
      clEnqueueNDRangeKernel(queue, e.kernel.get(), 3, nullptr, global.data(), local.data(), 0, nullptr, nullptr);
  views_.clear();  // the command has its own references
  read_notes(queue);
  if (code == CL_INVALID_WORK_GROUP_SIZE || code == CL_INVALID_WORK_ITEM_SIZE || code == CL_INVALID_GLOBAL_WORK_SIZE)
    refuse(e, "clEnqueueNDRangeKernel answered " + code_text(code));
  if (meaning(code) == errc::bad_argument && code != CL_SUCCESS)
    bad(e, "clEnqueueNDRangeKernel answered " + code_text(code));
  check_(code, "clEnqueueNDRangeKernel");
}

// Memory for what the launch notes of this array.
void programs::set_note(const entry& e, cl_uint argument, const std::string& array) {
  note& n = notes_.emplace(launched_, note{e.kernel_name, array, {}, {}})->second;
  cl_int code = CL_SUCCESS;
  n.there =
      memory_handle(clCreateBuffer(context_, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof n.here, &n.here, &code));
  check_(code, "clCreateBuffer");
  cl_mem memory = n.there.get();
  check_(clSetKernelArg(e.kernel.get(), argument, sizeof memory, &memory), "clSetKernelArg");
}

void programs::read_notes(cl_command_queue queue) {
  const auto [first, last] = notes_.equal_range(launched_);
  for (auto n = first; n != last; ++n)
    check_(clEnqueueReadBuffer(queue, n->second.there.get(), CL_FALSE, 0, sizeof n->second.here, &n->second.here, 0,
                               nullptr, nullptr),
           "clEnqueueReadBuffer");
}

std::string programs::complaint(std::uint64_t first, std::uint64_t last) {
  std::string said;
  const auto begin = notes_.lower_bound(first), end = notes_.upper_bound(last);
  for (auto n = begin; n != end; ++n)
    if (said.empty() && n->second.here.there != 0) said = rtc::told(n->second.here, n->second.kernel, n->second.array);
  notes_.erase(begin, end);
  return said;
}

void programs::set_arguments(const entry& e, std::span<const kernel_argument> arguments) {
  ++launched_;
  cl_uint at = 0;  // notes are arguments that nobody passes
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto& a = arguments[i];
    auto memory = static_cast<cl_mem>(a.memory.base);
    cl_int code = CL_SUCCESS;
    if (a.is_memory && a.memory.offset != 0) {
      if (a.memory.offset % base_align_ != 0)
        bad(e, "argument " + std::to_string(i) + ": OpenCL can pass memory from multiples of " +
                   std::to_string(base_align_) + " bytes on, not from " + std::to_string(a.memory.offset) +
                   "; put the offset into the shape");
      std::size_t size = 0;
      check_(clGetMemObjectInfo(memory, CL_MEM_SIZE, sizeof size, &size, nullptr), "clGetMemObjectInfo");
      if (a.memory.offset >= size) bad(e, "argument " + std::to_string(i) + " begins behind its memory");
      const cl_buffer_region region{a.memory.offset, size - a.memory.offset};
      memory = clCreateSubBuffer(memory, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
      check_(code, "clCreateSubBuffer");
      views_.emplace_back(memory);
    }
    code = a.is_memory ? clSetKernelArg(e.kernel.get(), at, sizeof memory, &memory)
                       : clSetKernelArg(e.kernel.get(), at, a.value.size(), a.value.data());
    ++at;
    if (meaning(code) == errc::bad_argument && code != CL_SUCCESS)
      bad(e, "argument " + std::to_string(i) + ": clSetKernelArg answered " + code_text(code));
    check_(code, "clSetKernelArg");
    if (e.checked && !e.parameters[i].array.empty()) set_note(e, at++, e.parameters[i].array);
  }
}

void programs::bad(const entry& e, const std::string& text) const {
  throw error(errc::bad_argument, check_.device() + ": kernel " + e.name + ": " + text);
}

void programs::refuse(const entry& e, const std::string& text) const {
  throw cannot_run(errc::bad_argument, check_.device() + ": kernel " + e.name + ": " + text);
}

}  // namespace troupe::devices::opencl
