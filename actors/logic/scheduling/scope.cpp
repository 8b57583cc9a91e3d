// What this file is for: scope algebra: the public values and their resolution.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/scheduling/scope.hpp"

#include <cctype>
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
scope scope::here() {
  return scope(std::make_shared<const node>(node{node::op::here, device_kind::cpu, {}, nullptr, nullptr}));
}
scope scope::at(std::string name) {
  return scope(std::make_shared<const node>(node{node::op::at, device_kind::cpu, std::move(name), nullptr, nullptr}));
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
  if (!n) return executor_set::every();
  using op = scope::node::op;
  if (n->what == op::either) return resolve_node(n->a.get(), all) | resolve_node(n->b.get(), all);
  if (n->what == op::both) return resolve_node(n->a.get(), all) & resolve_node(n->b.get(), all);
  executor_set set;
  for (const auto& e : all) {
    const bool fits = n->what == op::kind       ? e.kind == n->kind
                      : n->what == op::executor ? e.name == n->name || (e.label && e.label->is(n->name))
                      : n->what == op::here     ? e.kind != device_kind::node
                      : n->what == op::at       ? e.label && e.label->is(n->name)
                                                : e.kind != device_kind::cpu && e.kind != device_kind::node;
    if (fits) set.insert(e.id);
  }
  return set;
}
}  // namespace

namespace {
bool names_devices(const scope::node& n) {
  using op = scope::node::op;
  switch (n.what) {
    case op::kind:
      return n.kind != device_kind::cpu && n.kind != device_kind::node;
    case op::executor:
      return !n.name.starts_with("cpu:") && !n.name.starts_with("node:");
    default:
      return n.what == op::gpu;
  }
}

bool names_absent_below(const scope::node* n, std::span<const detail::executor_facts> all) {
  if (!n) return false;
  using op = scope::node::op;
  if (n->what == op::either || n->what == op::both)
    return names_absent_below(n->a.get(), all) || names_absent_below(n->b.get(), all);
  return names_devices(*n) && resolve_node(n, all).empty();
}
}  // namespace

bool names_absent_devices(const scope& s, std::span<const detail::executor_facts> all) {
  return names_absent_below(s.root(), all);
}

namespace {
bool may_name_nodes_below(const scope::node* n) {
  if (!n) return true;
  using op = scope::node::op;
  switch (n->what) {
    case op::either:
      return may_name_nodes_below(n->a.get()) || may_name_nodes_below(n->b.get());
    case op::both:
      return may_name_nodes_below(n->a.get()) && may_name_nodes_below(n->b.get());
    case op::kind:
      return n->kind == device_kind::node;
    case op::executor:  // others may be those of nodes
      return !n->name.starts_with("cpu:");
    default:
      return n->what == op::at;
  }
}

void add_names_below(const scope::node* n, bool executors, std::string& text) {
  if (!n) return;
  const bool is_node = n->what == scope::node::op::at;
  if (is_node || (executors && n->what == scope::node::op::executor))
    text += (text.empty() ? "" : ", ") + std::string(is_node ? "node " : "executor ") + n->name;
  add_names_below(n->a.get(), executors, text);
  add_names_below(n->b.get(), executors, text);
}
}  // namespace

bool may_name_nodes(const scope& s) { return may_name_nodes_below(s.root()); }

std::string nodes_named_in(const scope& s) {
  std::string text;
  add_names_below(s.root(), false, text);
  return text;
}

std::string names_in(const scope& s) {
  std::string text;
  add_names_below(s.root(), true, text);
  return text.empty() ? text : " (" + text + ")";
}

executor_set resolve(const scope& s, std::span<const detail::executor_facts> all) {
  executor_set every;
  for (const auto& e : all) every.insert(e.id);
  return resolve_node(s.root(), all) & every;
}

executor_set with_body(unsigned char kinds, std::span<const detail::executor_facts> all) {
  executor_set set;
  for (const auto& e : all)
    if (kinds & (1u << static_cast<int>(e.kind))) set.insert(e.id);
  return set;
}

executor_set able_to_run(const detail::kernel_info& k, std::span<const detail::executor_facts> all) {
  executor_set set = with_body(k.kinds, all);
  if (k.nodes) set |= k.nodes->get();
  if (k.doubles == 0) return set;
  for (const auto& e : all)
    if (!reason_against(k, e).empty()) set.erase(e.id);
  return set;
}

void abilities::add(const detail::executor_facts& e) {
  of_kind_[static_cast<std::size_t>(e.kind)].insert(e.id);
  if (e.kind != device_kind::node && !e.has_double) lack_doubles_[static_cast<std::size_t>(e.kind)].insert(e.id);
}

executor_set abilities::of(const detail::kernel_info& k) const {
  executor_set set;
  for (unsigned kind = 0; kind < of_kind_.size(); ++kind) {
    const unsigned bit = 1u << kind;
    if ((k.kinds & bit) == 0) continue;
    set |= of_kind_[kind];
    if (k.doubles & bit) set -= lack_doubles_[kind];
  }
  if (k.nodes) set |= k.nodes->get();
  return set;
}

std::string_view reason_against(const detail::kernel_info& k, const detail::executor_facts& e) {
  const bool needs = e.kind != device_kind::node && (k.doubles & k.kinds & (1u << static_cast<int>(e.kind))) != 0;
  return needs && !e.has_double ? "has no doubles, which the kernel uses" : "";
}

bool uses_double(std::string_view text) {
  constexpr std::string_view word = "double";
  const auto is_part_of_a_name = [&](std::size_t i) {
    return i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) != 0 || text[i] == '_');
  };
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view rest = text.substr(i);
    const bool line = rest.starts_with("//");
    if (line || rest.starts_with("/*")) {
      const std::size_t end = text.find(line ? "\n" : "*/", i + 2);
      if (end == std::string_view::npos) return false;
      i = end + (line ? 1 : 2);
      continue;
    }
    // OpenCL's double2 and the like count too.
    if (rest.starts_with(word) && (i == 0 || !is_part_of_a_name(i - 1))) {
      std::size_t end = i + word.size();
      while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
      if (!is_part_of_a_name(end)) return true;
    }
    ++i;
  }
  return false;
}

std::string names_of(executor_set set, std::span<const detail::executor_facts> all) {
  std::string text;
  for (const auto& e : all)
    if (set.contains(e.id)) {
      const std::string name = e.label ? e.label->text() : e.name;
      if (!name.empty()) text += (text.empty() ? "" : ", ") + name;
    }
  return text.empty() ? "none" : text;
}

}  // namespace logic
}  // namespace troupe
