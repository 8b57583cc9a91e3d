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

#include "actors/protocol/executor_facts.hpp"

namespace troupe::logic {

/// Set of executors, by their ids.
using executor_set = detail::id_set;
inline constexpr int executors_max = executor_set::end;

/// Returns the executors that the scope names. An unknown name matches none.
executor_set resolve(const scope&, std::span<const detail::executor_facts>);
/// True if the scope names accelerators that do not exist: any accelerator, a kind, or a name that is neither a core
/// group's nor a node's.
bool names_absent_devices(const scope&, std::span<const detail::executor_facts>);
/// True if the scope may contain a node: one that is connected, or one that is to come.
bool may_name_nodes(const scope&);
/// Returns the nodes that the scope names, as "node b, node c".
std::string nodes_named_in(const scope&);
/// Returns the executors and nodes that the scope names, as " (executor cpu:1, node b)"; empty if it names none.
std::string names_in(const scope&);
/// Returns the executors whose kind has a bit in `kinds`.
executor_set with_body(unsigned char kinds, std::span<const detail::executor_facts>);
/// Returns the executors that have a body of the kernel and can run it.
executor_set able_to_run(const detail::kernel_info&, std::span<const detail::executor_facts>);

/// Finds the same sets for many kernels: the cost grows with the kinds, not with the executors.
class abilities {
 public:
  void add(const detail::executor_facts&);
  executor_set of(const detail::kernel_info&) const;

 private:
  std::array<executor_set, device_kind_count + 1> of_kind_;       // nodes among them
  std::array<executor_set, device_kind_count + 1> lack_doubles_;  // of that kind, without nodes
};

/// Returns why the executor cannot run the body that the kernel has for its kind; empty if it can.
std::string_view reason_against(const detail::kernel_info&, const detail::executor_facts&);
/// True if the text uses the type double outside of its comments.
bool uses_double(std::string_view text);
/// Returns "cpu:0, cpu:1", for messages.
std::string names_of(executor_set, std::span<const detail::executor_facts>);

}  // namespace troupe::logic
