// What this file is for: the table of OpenCL's error codes: their names, and what each means here.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "devices/opencl/codes.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace troupe::devices::opencl {

namespace {

struct code_entry {
  cl_int code;
  const char* name;
  errc what;
};

constexpr auto failed = errc::device_failed, lost = errc::device_lost, bad = errc::bad_argument,
               text = errc::compile_failed, unsupported = errc::not_supported;

// -1 to -1001; what is not listed is a failure of the device.
constexpr std::array entries{
    code_entry{-1, "CL_DEVICE_NOT_FOUND", lost},
    code_entry{-2, "CL_DEVICE_NOT_AVAILABLE", lost},
    code_entry{-3, "CL_COMPILER_NOT_AVAILABLE", unsupported},
    code_entry{-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE", failed},
    code_entry{-5, "CL_OUT_OF_RESOURCES", failed},
    code_entry{-6, "CL_OUT_OF_HOST_MEMORY", failed},
    code_entry{-8, "CL_MEM_COPY_OVERLAP", bad},
    code_entry{-11, "CL_BUILD_PROGRAM_FAILURE", text},
    code_entry{-12, "CL_MAP_FAILURE", failed},
    code_entry{-13, "CL_MISALIGNED_SUB_BUFFER_OFFSET", bad},
    code_entry{-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST", failed},
    code_entry{-15, "CL_COMPILE_PROGRAM_FAILURE", text},
    code_entry{-17, "CL_LINK_PROGRAM_FAILURE", text},
    code_entry{-19, "CL_KERNEL_ARG_INFO_NOT_AVAILABLE", failed},
    code_entry{-30, "CL_INVALID_VALUE", bad},
    code_entry{-33, "CL_INVALID_DEVICE", lost},
    code_entry{-34, "CL_INVALID_CONTEXT", failed},
    code_entry{-36, "CL_INVALID_COMMAND_QUEUE", failed},
    code_entry{-38, "CL_INVALID_MEM_OBJECT", bad},
    code_entry{-42, "CL_INVALID_BINARY", text},
    code_entry{-43, "CL_INVALID_BUILD_OPTIONS", text},
    code_entry{-44, "CL_INVALID_PROGRAM", failed},
    code_entry{-45, "CL_INVALID_PROGRAM_EXECUTABLE", failed},
    code_entry{-46, "CL_INVALID_KERNEL_NAME", text},
    code_entry{-47, "CL_INVALID_KERNEL_DEFINITION", text},
    code_entry{-48, "CL_INVALID_KERNEL", failed},
    code_entry{-49, "CL_INVALID_ARG_INDEX", bad},
    code_entry{-50, "CL_INVALID_ARG_VALUE", bad},
    code_entry{-51, "CL_INVALID_ARG_SIZE", bad},
    code_entry{-52, "CL_INVALID_KERNEL_ARGS", bad},
    code_entry{-53, "CL_INVALID_WORK_DIMENSION", bad},
    code_entry{-54, "CL_INVALID_WORK_GROUP_SIZE", bad},
    code_entry{-55, "CL_INVALID_WORK_ITEM_SIZE", bad},
    code_entry{-56, "CL_INVALID_GLOBAL_OFFSET", bad},
    code_entry{-57, "CL_INVALID_EVENT_WAIT_LIST", failed},
    code_entry{-58, "CL_INVALID_EVENT", failed},
    code_entry{-59, "CL_INVALID_OPERATION", failed},
    code_entry{-61, "CL_INVALID_BUFFER_SIZE", bad},
    code_entry{-63, "CL_INVALID_GLOBAL_WORK_SIZE", bad},
    code_entry{-1001, "CL_PLATFORM_NOT_FOUND_KHR", lost},
    code_entry{-9999, "illegal access to memory (NVIDIA)", failed},
};

const code_entry* find(cl_int code) {
  const auto* at = std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return e.code == code; });
  return at == entries.end() ? nullptr : at;
}

}  // namespace

std::string code_text(cl_int code) {
  const auto* known = find(code);
  return std::to_string(code) + (known ? std::string(" ") + known->name : std::string());
}

errc meaning(cl_int code) {
  const auto* known = find(code);
  return known ? known->what : failed;
}

bool is_no_room(cl_int code) { return code == -4 || code == -5 || code == -6 || code == -61; }

void code_check::operator()(cl_int code, const char* call) {
  if (code != CL_SUCCESS) raise(meaning(code), std::string(call) + " answered " + code_text(code));
}

void code_check::ended(cl_int status) {
  // The numbers of `status` are the drivers' own (PoCL: -1 for all), but for this one.
  if (status < 0) raise(status == -2 ? lost : failed, "a command ended with " + std::to_string(status));
}

void code_check::raise(errc what, const std::string& why) {
  const error e(what, device_ + ": " + why);
  if (!failure_ && (what == failed || what == lost)) {
    failure_ = e;
    on_failure_();
  }
  throw e;
}

}  // namespace troupe::devices::opencl
