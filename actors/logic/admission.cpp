// What this file is for: where a task gets what it asks for, and what it gives back.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/admission.hpp"

#include <algorithm>

#include <troupe/error.hpp>

namespace troupe::logic {

using detail::task_record;

admission::node_pool* admission::pool_of(std::uint16_t executor) {
  const auto at = std::ranges::find(nodes_, executor, &node_pool::executor);
  return at == nodes_.end() ? nullptr : &*at;
}

void admission::add_node(std::uint16_t executor, const std::vector<resource>& has) {
  remove_node(executor);
  if (has.empty()) return;
  const std::lock_guard hold(nodes_lock_);
  nodes_.push_back({executor, resources(has)});
}

void admission::remove_node(std::uint16_t executor) {
  changed_ = true;
  const std::lock_guard hold(nodes_lock_);
  std::erase_if(nodes_, [&](const node_pool& n) { return n.executor == executor; });
}

void admission::check(const std::vector<resource>& request) const {
  try {
    resources_.check(request);
  } catch (const error& e) {
    if (e.code() != errc::no_resource || !asks_for_quantities(request)) throw;
    const std::lock_guard hold(nodes_lock_);
    if (std::ranges::none_of(nodes_, [&](const node_pool& n) { return n.has.exists(request); })) throw;
  }
  devices_.check(request);
}

// Devices are this node's, and so are several slots if it may give them: nobody knows how large the groups of others are.
admission::places admission::narrowed(const task_record& t, places p) const {
  const std::vector<resource>& request = t.extra->options.resources;
  if (p.here && (devices_.asked(request) != 0 || slots_of(request) > 1)) p.nodes = p.open = {};
  return p;
}

bool admission::exists(const task_record& t, const places& p) const {
  const std::vector<resource>& request = t.extra->options.resources;
  if (!asks_for_quantities(request) || (p.here && resources_.exists(request))) return true;
  return std::ranges::any_of(nodes_,
                             [&](const node_pool& n) { return p.nodes.contains(n.executor) && n.has.exists(request); });
}

bool admission::take(task_record& t, const places& p, std::uint64_t now) {
  detail::task_extra& e = *t.extra;
  const std::vector<resource>& request = e.options.resources;
  const std::size_t count = devices_.asked(request);
  if (!take_somewhere(t, p)) return false;
  if (count != 0 && !devices_.take(count, e.waits_since, now, e.devices)) {
    finished(t);
    return false;
  }
  return true;
}

bool admission::take_somewhere(task_record& t, const places& p) {
  detail::task_extra& e = *t.extra;
  const std::vector<resource>& request = e.options.resources;
  if (!asks_for_quantities(request)) {
    e.holds_at = p.here && p.open.empty() ? detail::holds_here : detail::holds_nowhere;
  } else {
    double most = p.here ? resources_.left_after(request) : -1;
    resources* from = most >= 0 ? &resources_ : nullptr;
    std::uint16_t at = detail::holds_here;
    for (node_pool& n : nodes_) {
      if (!p.open.contains(n.executor)) continue;
      const double left = n.has.left_after(request);
      if (left < 0 || (from && left <= most)) continue;
      most = left;
      from = &n.has;
      at = n.executor;
    }
    if (!from || !from->take(request)) return false;
    e.holds_at = at;
  }
  t.marks |= detail::mark_holds_resources;
  return true;
}

void admission::finished(task_record& t) {
  if (!(t.marks & detail::mark_holds_resources)) return;
  detail::task_extra& e = *t.extra;
  if (holds_elsewhere(t)) {
    if (node_pool* const n = pool_of(e.holds_at)) n->has.give(e.options.resources);
  } else if (asks_for_quantities(e.options.resources)) {
    resources_.give(e.options.resources);
  }
  devices_.give(e.devices);
  e.holds_at = detail::holds_nowhere;
  t.marks &= static_cast<std::uint16_t>(~detail::mark_holds_resources);
  changed_ = true;
}

}  // namespace troupe::logic
