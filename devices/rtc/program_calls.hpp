// What this file is for: a compiler behind the functions that NVRTC and HIPRTC share but for their prefix.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "devices/rtc/compiler.hpp"

namespace troupe::devices::rtc {

/// 0 is success everywhere; names are those of the libraries without the prefix.
struct program_calls {
  int (*version)(int* major, int* minor);
  int (*create)(void** program, const char* text, const char* name, int headers, const char* const* header_texts,
                const char* const* header_names);
  int (*compile)(void* program, int options, const char* const* option);
  int (*log_size)(void* program, std::size_t*);
  int (*log)(void* program, char*);
  int (*code_size)(void* program, std::size_t*);
  int (*code)(void* program, char*);
  int (*destroy)(void** program);
  const char* (*error_string)(int);
};

struct program_dialect {
  std::string name;                  ///< "nvrtc"
  std::string target_option;         ///< the target is appended
  std::vector<std::string> options;  ///< the others
};

std::unique_ptr<compiler> make_program_compiler(const program_calls&, program_dialect);

}  // namespace troupe::devices::rtc
