// What this file is for: where a task gets what it asks for, and what it gives back.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/scheduling/admission.hpp"

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
  nodes_.push_back({executor, resources(has, guess_)});
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

// Restricts a task that asks for devices, or for several slots, to this node if it may run here: nodes do not know how
// large the core groups of others are.
admission::eligible_nodes admission::narrowed(const task_record& t, eligible_nodes p) const {
  const std::vector<resource>& request = t.extra->options.resources;
  if (p.here && (devices_.asked(request) != 0 || slots_of(request) > 1)) p.nodes = p.open = {};
  return p;
}

bool admission::exists(const task_record& t, const eligible_nodes& p) const {
  const std::vector<resource>& request = t.extra->options.resources;
  if (!asks_for_quantities(request) || (p.here && resources_.exists(request))) return true;
  return std::ranges::any_of(nodes_,
                             [&](const node_pool& n) { return p.nodes.contains(n.executor) && n.has.exists(request); });
}

bool admission::excludes(const task_record& holder, const task_record& other) const {
  if (!nodes_.empty() || !(holder.marks & detail::mark_holds_resources) || holder.extra->holds_at != detail::holds_here)
    return false;
  if (!concerns(other) || (other.marks & detail::mark_holds_resources) || is_over(other)) return false;
  return excludes(holder, other.extra->options.resources);
}

// True if what `holder` has of this node leaves too little for such a request, whatever others have.
bool admission::excludes(const task_record& holder, const std::vector<resource>& asks) const {
  const std::size_t devices = devices_.asked(asks);
  return (devices != 0 && holder.extra->devices.size() + devices > devices_.size()) ||
         resources_.exceeds(holder.extra->options.resources, asks);
}

void admission::add_excluded(const task_record& holder, std::vector<task_record*>& to) {
  if (!(holder.marks & detail::mark_holds_resources)) return;
  const auto look = [&](const entry& e) {
    if (excludes(holder, *e.task)) to.push_back(e.task);
    return false;  // it stays
  };
  for (line& l : lines_)
    if (excludes(holder, l.asks)) l.tasks.take_first(excluded_max, look, [](const entry&) {});
}

void admission::queue(task_record& t) {
  const detail::task_extra& e = *t.extra;
  const auto is_same = [&](const line& l) {
    return l.kernel == t.kernel && l.executors == e.executors &&
           std::ranges::equal(l.asks, e.options.resources, [](const resource& a, const resource& b) {
             return a.amount == b.amount && a.name == b.name;
           });
  };
  auto l = std::ranges::find_if(lines_, is_same);
  if (l == lines_.end()) {
    lines_.push_back({t.kernel, e.options.resources, e.executors, {}});
    l = lines_.end() - 1;
  }
  l->tasks.push({&t, e.options.priority, ++turns_}, e.options.priority);
  changed_ = true;
}

void admission::begin_round() {
  resources_.begin_round();
  devices_.begin_round();
  for (node_pool& n : nodes_) n.has.begin_round();
}

bool admission::take(task_record& t, const eligible_nodes& p, std::uint64_t now, std::uint64_t lasts,
                     const bring_bytes& bring) {
  detail::task_extra& e = *t.extra;
  const std::size_t count = devices_.asked(e.options.resources);
  if (!take_somewhere(t, p, now, lasts)) return false;
  if (count != 0 && !devices_.take(count, e.waits_since, now, e.devices, {&t, lasts, &bring})) {
    give_back(t);
    return false;
  }
  return true;
}

bool admission::take_somewhere(task_record& t, const eligible_nodes& p, std::uint64_t now, std::uint64_t lasts) {
  detail::task_extra& e = *t.extra;
  const std::vector<resource>& request = e.options.resources;
  if (!asks_for_quantities(request)) {
    e.holds_at = p.here && p.open.empty() ? detail::holds_here : detail::holds_nowhere;
  } else {
    resources* from = nullptr;
    double most = -1;
    const auto look = [&](resources& r, std::uint16_t at) {
      const double left = r.left_after(request);
      if (left < 0 || (from && left <= most)) return;
      if (!r.lets_pass(request, now, lasts)) {
        const std::uint64_t again = r.look_at(request, now, guess_);
        if (again != reservation::never && (due_ == 0 || again < due_)) due_ = again;
        return;
      }
      most = left;
      from = &r;
      e.holds_at = at;
    };
    if (p.here) look(resources_, detail::holds_here);
    for (node_pool& n : nodes_)
      if (p.open.contains(n.executor)) look(n.has, n.executor);
    if (!from || !from->take(request, &t, now, lasts)) {
      e.holds_at = detail::holds_nowhere;
      return false;
    }
  }
  t.marks |= detail::mark_holds_resources;
  return true;
}

// Reserves the task's quantities on the node where all of them are predicted to be free first, and its devices from
// that time on.
void admission::keep_for(task_record& t, const eligible_nodes& p, std::uint64_t now) {
  const std::vector<resource>& request = t.extra->options.resources;
  const std::size_t count = devices_.asked(request);
  std::uint64_t at = now;
  resources* first = nullptr;
  if (asks_for_quantities(request)) {
    at = reservation::never;
    const auto look = [&](resources& r) {
      if (!r.exists(request)) return;
      const std::uint64_t begins = r.begins(request, now);
      if (first && begins >= at) return;
      first = &r;
      at = begins;
    };
    if (p.here) look(resources_);
    for (node_pool& n : nodes_)
      if (p.open.contains(n.executor)) look(n.has);
    if (!first) return;  // all nodes that have the quantities are paused
  }
  if (count != 0) {
    const bool lacks_quantities = at > now;  // else take() has kept devices for it already, if it can
    at = std::max(at, devices_.begins(count, now));
    if (lacks_quantities) devices_.keep(count, &t, at, now);
  }
  if (first) first->keep(request, &t, at, now);
}

void admission::give_back(task_record& t) {
  detail::task_extra& e = *t.extra;
  if (holds_elsewhere(t)) {
    if (node_pool* const n = pool_of(e.holds_at)) n->has.give(e.options.resources, &t);
  } else if (asks_for_quantities(e.options.resources)) {
    resources_.give(e.options.resources, &t);
  }
  devices_.give(e.devices, &t);
  e.holds_at = detail::holds_nowhere;
  t.marks &= static_cast<std::uint16_t>(~detail::mark_holds_resources);
}

void admission::finished(task_record& t) {
  if (!(t.marks & detail::mark_holds_resources)) return;
  give_back(t);
  changed_ = true;
}

}  // namespace troupe::logic
