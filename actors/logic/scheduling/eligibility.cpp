// What this file is for: the masks of tasks, remembered by kernel.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/scheduling/eligibility.hpp"

namespace troupe::logic {

using detail::task_record;

void eligibility::add(const detail::executor_facts& f) {
  abilities_.add(f);
  all_.insert(f.id);
  if (f.kind == device_kind::node) nodes_.insert(f.id);
  if (f.space == detail::host_space) {
    cores_.insert(f.id);
    ++groups_;
  }
  ++changes_;
}

const eligibility::masks& eligibility::masks_of(const task_record& t) {
  if (t.extra) {
    other_masks_.all = mask_of(t);
    other_masks_.now = other_masks_.all;
    other_masks_.now -= paused_;
    other_masks_.ever = ever_able(*t.kernel);
    other_masks_.ever &= t.extra->executors;
    // A scope that names nodes is resolved again when others have joined.
    const scope& where = t.extra->options.where;
    if (t.kernel->portable && !where.is_any() && may_name_nodes(where)) other_masks_.ever |= nodes_;
    return other_masks_;
  }
  const detail::kernel_info& k = *t.kernel;
  const std::uint32_t offered = k.nodes ? k.nodes->changes() : 0;
  known_masks& m = known_masks_[(reinterpret_cast<std::uintptr_t>(&k) >> 6) % known_masks_.size()];
  if (m.kernel != &k || m.nodes != k.nodes || m.changes != changes_ || m.offered != offered || m.kinds != k.kinds ||
      m.doubles != k.doubles) {
    m.kernel = &k;
    m.nodes = k.nodes;
    m.changes = changes_;
    m.offered = offered;
    m.kinds = k.kinds;
    m.doubles = k.doubles;
    m.found.all = mask_of(t);
    m.found.now = m.found.all;
    m.found.now -= paused_;
    m.found.ever = ever_able(k);
  }
  return m.found;
}

executor_set eligibility::mask_of(const task_record& t) const {
  executor_set mask = mask_in_scope(t);
  if (!t.extra || t.extra->holds_at == detail::holds_nowhere) return mask;
  if (t.extra->holds_at == detail::holds_here) return mask -= nodes_;
  executor_set one;
  one.insert(t.extra->holds_at);
  return mask &= one;
}

admission::eligible_nodes eligibility::nodes_for(const task_record& t) const {
  const executor_set mask = mask_in_scope(t);
  admission::eligible_nodes p;
  p.nodes = mask & nodes_;
  p.here = !(mask - nodes_).empty();
  p.open = p.nodes - paused_;
  return p;
}

executor_set eligibility::ever_able(const detail::kernel_info& k) const {
  executor_set able = abilities_.of(k);
  if (k.portable) able |= nodes_;
  return able;
}

executor_set eligibility::mask_in_scope(const task_record& t) const {
  executor_set mask = abilities_.of(*t.kernel);
  if (t.extra) mask &= t.extra->executors;
  return mask -= withdrawn_;
}

}  // namespace troupe::logic
