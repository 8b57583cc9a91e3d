// What this file is for: what stands around a kernel's text when it is compiled, and what can be read from it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "devices/accelerator.hpp"

namespace troupe::devices::rtc {

/// Prelude of the target, prelude of all, the kernel's text; compilers count lines from the latter's first. Where the
/// source is to be checked, each array is three arguments: the last is memory for an access_note.
std::string with_preludes(std::string_view target_prelude, const kernel_source&);

/// A kernel's note of the first element that it touches outside of an array; as the preludes write it.
struct access_note {
  std::int64_t there = 0, rank = 0;
  std::int64_t at[4] = {}, lo[4] = {}, hi[4] = {};
  std::int64_t unused[2] = {};
};
static_assert(sizeof(access_note) == 128);
/// "kernel 'blur': argument 'a': element (5,12) is outside its box [0,5) x [0,12)".
std::string told(const access_note&, std::string_view kernel, std::string_view array);

/// A parameter as it is passed to a launch.
struct parameter {
  bool is_memory = false;
  std::size_t bytes = 0;  ///< of a value; 0: not known
  std::string array{};    ///< of the shape of an array: its name
  std::size_t element_bytes = 0;  ///< of an element of memory; 0: not known
};

/// The parameters of the kernel `entry`, read from the text for targets that cannot be asked. Nothing where the text
/// does not show them, for instance behind macros of its own.
std::optional<std::vector<parameter>> parameters_of(std::string_view text, std::string_view entry);

/// "kernel scale (scale.k) for sm_90": how messages call it.
/// "kernel add (sum) for sm_90: there is no function 'add' in the text, which has: mul, div".
std::string no_function(const kernel_source&, std::string_view target);
std::string described(const kernel_source&, std::string_view target);
/// "kernel add for sm_90 does not compile: typo:1:48: error: ... (`by`); the log:" and, on lines of their own, the log
/// of the compiler: the first line says what is wrong.
std::string does_not_compile(const kernel_source&, std::string_view target, const std::string& by,
                             const std::string& log);

/// Throws error(bad_argument) where arguments and parameters differ.
void check_arguments(std::span<const kernel_argument>, const std::vector<parameter>&, std::string_view entry);

}  // namespace troupe::devices::rtc
