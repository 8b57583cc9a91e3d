// What this file is for: groups of readers found, formed, joined and left while tasks are ordered.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/data/gated_reads.hpp"

#include <algorithm>

namespace troupe::logic {

namespace {
// Most tasks read few tiles, and no array of many.
bool may_read_many(const task_record& t) {
  constexpr std::size_t many = detail::read_groups::tiles_min;
  return t.access_count >= many || std::any_of(t.accesses, t.accesses + t.access_count, [](const access& x) {
           return x.array && x.where && x.array->tile_count >= many && x.mode == access_mode::read;
         });
}

// True if the tiles have one writer each, or none that is known, and nothing keeps them from being read.
bool may_gather(std::span<const access> reads) {
  bool may = std::ranges::none_of(reads, [](const access& x) { return x.array->open != nullptr; });
  detail::read_groups::each_tile(reads, [&](const detail::array_core& a, std::uint32_t tile) {
    const tile_history& s = a.states[tile];
    may = may && !s.parts && s.valid && !s.poison;
  });
  return may;
}
}  // namespace

void gated_reads::begin(const task_record& task, std::vector<task_record*>& made) {
  task_ = &task;
  found_.clear();
  next_ = 0;
  if (allowed_ && may_read_many(task)) find(task, made);
}

void gated_reads::find(const task_record& task, std::vector<task_record*>& made) {
  for (int i = 0; i < task.access_count;) {
    detail::read_groups::found list = groups_.find_again(task, i);
    if (!list.reads.empty()) {
      i += static_cast<int>(list.reads.size());
    } else {
      const std::span<const access> all = detail::read_groups::reads_from(task, i);
      i += std::max(1, static_cast<int>(all.size()));
      list = groups_.find(all);
    }
    detail::read_group* g = list.group;
    if (!g && groups_.is_worth_forming() && may_gather(list.reads)) g = form(list.reads, made);
    if (g) found_.push_back({static_cast<int>(list.reads.data() - task.accesses), list.reads.size(), g, g->number});
  }
}

detail::read_group* gated_reads::form(std::span<const access> reads, std::vector<task_record*>& made) {
  detail::read_group& g = groups_.form();
  bool any = false;
  detail::read_groups::each_tile(reads, [&](const detail::array_core& a, std::uint32_t tile) {
    tile_history& s = a.states[tile];
    if (s.group == &g) return;  // the list has the tile twice
    if (s.group) take_out(s);
    g.writers.push_back(s.writer);
    any = any || (graph_.alive(s.writer) && !detail::is_sealed(*s.writer.task));
    detail::read_groups::enter(s, g);
  });
  g.note_writers();
  if (any) {
    task_record* const gate = maker_.make_gate();
    if (!gate) return nullptr;
    made.push_back(gate);
    order_gate(*gate, g);
    g.gate = {gate, gate->sequence};
  }
  g.complete = true;
  return &g;
}

// Has the gate wait for the writers. Its submission, which is counted, keeps it from being passed before the task that
// is being ordered waits for it.
void gated_reads::order_gate(task_record& gate, const detail::read_group& g) {
  gate.sequence = graph_.next_number();
  gate.marks |= detail::mark_early;
  graph_.begin(gate);
  for (const task_ref& w : g.writers) graph_.add_edge(w, gate, true);
  graph_.end(gate);
}

std::size_t gated_reads::join(task_record& task, int access) {
  if (next_ == found_.size() || found_[next_].first != access) return 0;
  joined_group& g = found_[next_++];
  return join(task, g) ? g.reads : 0;
}

bool gated_reads::join(task_record& task, joined_group& j) {
  detail::read_group& g = *j.group;
  if (!g.complete || g.number != j.number) return false;
  if (graph_.notes_edges())
    for (const task_ref& w : g.writers) graph_.note(w, task);
  if (const bool early = (task.marks & detail::mark_early) != 0; !early || !g.used_early) {
    const std::span<const detail::access> reads(task.accesses + j.first, j.reads);
    for (const detail::access& x : reads) x.array->note_use(early);
    g.used_early = g.used_early || early;
  }
  if (g.gate.task) graph_.add_edge(g.gate, task, true);
  g.readers.add({&task, task.sequence}, graph_.living());
  ++g.joined;
  j.joined = true;
  return true;
}

bool gated_reads::comes_after(const task_record& t, const task_ref& r) const {
  return &t == task_ && std::ranges::any_of(found_, [&](const joined_group& j) {
    return j.joined && j.group->number == j.number && graph_.alive(j.group->gate) && j.group->is_writer(r);
  });
}

void gated_reads::leave(tile_history& s, task_record& writer) {
  std::span<const task_ref> left(s.group->readers.begin(), s.group->readers.end());
  for (const joined_group& j : found_) {
    if (&writer != task_ || !j.joined || j.group->number != j.number) continue;
    const auto counts = [&](const task_ref& r) { return graph_.notes_edges() || graph_.alive(r); };
    if (const std::span<const task_ref> some = j.group->beside_writers(*s.group, counts); some.size() < left.size())
      left = some;
  }
  for (const task_ref& r : left)
    if (!graph_.is_linked(r, writer) && !comes_after(writer, r)) graph_.link(r, writer, false);
  groups_.leave(s);
}

void gated_reads::take_out(tile_history& s) {
  for (const task_ref& r : s.group->readers)
    if (graph_.alive(r)) s.readers.add(r, graph_.living());
  groups_.leave(s);
}

}  // namespace troupe::logic
