// What this file is for: scope algebra: the public values and their resolution.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/scope.hpp"

#include <memory>

namespace troupe {

scope scope::kind(device_kind k) {
  return scope(std::make_shared<const node>(node{node::op::kind, k, {}, nullptr, nullptr}));
}
scope scope::gpu() {
  return scope(std::make_shared<const node>(node{node::op::gpu, device_kind::cuda, {}, nullptr, nullptr}));
}
scope scope::executor(std::string name) {
  return scope(
      std::make_shared<const node>(node{node::op::executor, device_kind::cpu, std::move(name), nullptr, nullptr}));
}
scope operator|(const scope& a, const scope& b) {
  if (a.is_any() || b.is_any()) return scope();
  return scope(std::make_shared<const scope::node>(
      scope::node{scope::node::op::either, device_kind::cpu, {}, a.node_, b.node_}));
}
scope operator&(const scope& a, const scope& b) {
  if (a.is_any()) return b;
  if (b.is_any()) return a;
  return scope(
      std::make_shared<const scope::node>(scope::node{scope::node::op::both, device_kind::cpu, {}, a.node_, b.node_}));
}

namespace logic {

namespace {
executor_set resolve_node(const scope::node* n, std::span<const detail::executor_facts> all) {
  if (!n) return ~executor_set{0};
  using op = scope::node::op;
  if (n->what == op::either) return resolve_node(n->a.get(), all) | resolve_node(n->b.get(), all);
  if (n->what == op::both) return resolve_node(n->a.get(), all) & resolve_node(n->b.get(), all);
  executor_set set = 0;
  for (const auto& e : all) {
    const bool fits = n->what == op::kind       ? e.kind == n->kind
                      : n->what == op::executor ? e.name == n->name
                                                : e.kind != device_kind::cpu;
    if (fits) set |= executor_set{1} << e.id;
  }
  return set;
}
}  // namespace

executor_set resolve(const scope& s, std::span<const detail::executor_facts> all) {
  executor_set every = 0;
  for (const auto& e : all) every |= executor_set{1} << e.id;
  return resolve_node(s.root(), all) & every;
}

executor_set with_body(unsigned char kinds, std::span<const detail::executor_facts> all) {
  executor_set set = 0;
  for (const auto& e : all)
    if (kinds & (1u << static_cast<int>(e.kind))) set |= executor_set{1} << e.id;
  return set;
}

std::string names_of(executor_set set, std::span<const detail::executor_facts> all) {
  std::string text;
  for (const auto& e : all)
    if (set & (executor_set{1} << e.id)) text += (text.empty() ? "" : ", ") + e.name;
  return text.empty() ? "none" : text;
}

}  // namespace logic
}  // namespace troupe
