// What this file is for: resolves scopes to sets of executors.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <troupe/detail/id_set.hpp>
#include <troupe/scope.hpp>

#include "actors/protocol/executor.hpp"

namespace troupe::logic {

/// Executors by their ids.
using executor_set = detail::id_set;
inline constexpr int executors_max = executor_set::end;

/// The executors that the scope names. Unknown names name nobody.
executor_set resolve(const scope&, std::span<const detail::executor_facts>);
/// It names accelerators of which there are none: any of them, a kind, or one that is neither a core group nor a node.
bool names_absent_devices(const scope&, std::span<const detail::executor_facts>);
/// A node may be in it: one that is there, or that is to come.
bool may_name_nodes(const scope&);
/// "node b, node c": those that it names.
std::string nodes_named_in(const scope&);
/// The executors whose kind has a bit in `kinds`.
executor_set with_body(unsigned char kinds, std::span<const detail::executor_facts>);
/// The executors that have a body of the kernel and can run it.
executor_set able_to_run(const detail::kernel_info&, std::span<const detail::executor_facts>);

/// The same for many kernels: costs what the kinds cost, not what the executors do.
class abilities {
 public:
  void add(const detail::executor_facts&);
  executor_set of(const detail::kernel_info&) const;

 private:
  std::array<executor_set, device_kind_count + 1> of_kind_;       // nodes among them
  std::array<executor_set, device_kind_count + 1> lack_doubles_;  // of that kind
};

/// Why the executor cannot run the body that the kernel has for its kind; empty if it can.
std::string_view reason_against(const detail::kernel_info&, const detail::executor_facts&);
/// A text that uses the type double, outside of its comments.
bool uses_double(std::string_view text);
/// "cpu:0, cpu:1": for messages.
std::string names_of(executor_set, std::span<const detail::executor_facts>);

}  // namespace troupe::logic
