// What this file is for: what stands around a kernel's text when it is compiled, and what can be read from it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "devices/accelerator.hpp"

namespace troupe::devices::rtc {

/// Prelude of the target, prelude of all, the kernel's text; compilers count lines from the latter's first.
std::string with_preludes(std::string_view target_prelude, const kernel_source&);

/// One parameter as it is passed to a launch.
struct parameter {
  bool is_memory = false;
  std::size_t bytes = 0;  ///< of a value; 0: not known
};

/// The parameters of the kernel `entry`, read from the text for targets that cannot be asked. Nothing where the text
/// does not show them, for instance behind macros of its own.
std::optional<std::vector<parameter>> parameters_of(std::string_view text, std::string_view entry);

/// "kernel scale (scale.k) for sm_90": how messages call it.
/// "kernel add (sum) for sm_90: there is no function 'add' in the text, which has: mul, div".
std::string no_function(const kernel_source&, std::string_view target);
std::string described(const kernel_source&, std::string_view target);

/// Throws error(bad_argument) where arguments and parameters differ.
void check_arguments(std::span<const kernel_argument>, const std::vector<parameter>&, std::string_view entry);

}  // namespace troupe::devices::rtc
