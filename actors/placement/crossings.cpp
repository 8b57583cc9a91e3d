// What this file is for: to which node a task goes whose predecessors are on several, and what these send it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/placement/crossings.hpp"

#include <algorithm>

#include "actors/execution/reexecution.hpp"
#include "actors/logic/data/directory.hpp"

namespace troupe::detail {

namespace {

// Bytes of a box up to which it is promised: those of what travels inside messages.
constexpr std::uint64_t promised_max = 4096;
// Most boxes that one task is promised.
constexpr std::size_t boxes_max = 64;

// True if the last of the tasks under way that write a tile sends a copy of it home with its end.
bool comes_home(const coherence_entry& entry, std::uint64_t bytes) {
  const task_ref* last = entry.handed.begin();
  for (const task_ref& r : entry.handed)
    if (number_of(r.sequence) > number_of(last->sequence)) last = &r;
  return bytes <= promised_max && last->task->extra && last->task->extra->read_elsewhere;
}

bool is_handed_to(const coherence_entry& entry, std::size_t executor) {
  return std::ranges::any_of(entry.handed, [&](const task_ref& r) { return r.task->executor == executor; });
}

// Calls f(entry) for each tile that the task writes in memory and that may be elsewhere.
template <class F>
void each_entry_written(const task_record& t, F&& f) {
  for (int i = 0; i < t.access_count; ++i)
    if (const access& x = t.accesses[i]; x.array && x.array->coherence && logic::writes(x))
      logic::each_tile_of(x, [&](std::uint32_t tile) { f(x.array->coherence->tiles[tile]); });
}

// Calls f(access, tile, box) for each box of a tile that the task touches in memory.
template <class F>
void each_box_of(const task_record& t, F&& f) {
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    if (!x.array || x.mode == access_mode::reduce) continue;
    if (logic::is_whole(x)) {
      f(x, x.tile, x.array->tile_box(x.tile));
      continue;
    }
    logic::each_touched(*x.where, [&](const logic::box4& b) {
      x.array->each_tile(b, [&](std::uint32_t tile, const logic::box4& all) { f(x, tile, intersect(b, all)); });
    });
  }
}

}  // namespace

bool crossings::writes_tile(const task_record& t, const array_core& a, std::uint32_t tile) {
  return std::any_of(t.accesses, t.accesses + t.access_count, [&](const access& x) {
    return x.array == &a && logic::is_whole(x) && x.tile == tile && logic::writes(x);
  });
}

// ---- a task waits ---------------------------------------------------------------------------------------------------

void crossings::add(const task_record& next, const task_record& first, bool data) {
  waiting& w = counted_[&next];
  if (w.sequence != next.sequence) w = {next.sequence, 0, {}};
  ++w.edges;
  for (predecessor& p : w.all)
    if (p.task == &first) {
      ++p.edges;
      p.data = p.data || data;
      return;
    }
  w.all.push_back({&first, first.sequence, 1, data});
}

void crossings::remove(const task_record& next, const task_record& first) {
  const auto known = counted_.find(&next);
  if (known == counted_.end()) return;
  waiting& w = known->second;
  std::erase_if(w.all, [&](const predecessor& p) {
    if (p.task != &first) return false;
    w.edges -= p.edges;
    return true;
  });
  if (w.all.empty()) counted_.erase(known);
}

const crossings::waiting* crossings::all_of(const task_record& next) const {
  const auto known = counted_.find(&next);
  if (known == counted_.end() || known->second.sequence != next.sequence || known->second.edges != next.pending)
    return nullptr;
  return &known->second;
}

// ---- where to -------------------------------------------------------------------------------------------------------

// True if what a task elsewhere writes may be sent to a node while it runs. What it pulls itself must have been
// promised to it: else a task that overwrites that could come before it is kept for it.
bool crossings::may_send(const predecessor& p, std::size_t to) const {
  if (!p.data || !far_.contains(p.task->executor) || p.task->kind != task_kind::call ||
      (p.task->extra && !p.task->extra->pulls.empty()))
    return false;
  const memory_space here = assignment_.facts()[p.task->executor].space, there = assignment_.facts()[to].space;
  return assignment_.reaches(there, here) && assignment_.reaches(here, there);
}

// True if what the task overwrites is in host memory, or comes there with the end of a task which that node has, and no
// other node is about to write it. A task elsewhere that reads it may have to run again.
bool crossings::may_overwrite(const task_record& t, std::size_t to) {
  return std::all_of(t.accesses, t.accesses + t.access_count, [&](const access& x) {
    if (!x.array || !x.array->coherence || !logic::writes(x)) return true;
    bool may = true;
    logic::each_tile_of(x, [&](std::uint32_t tile) {
      const coherence_entry& entry = x.array->coherence->tiles[tile];
      may = may && (entry.handed.empty() ? entry.dirty_in == host_space
                                         : entry.handed_to == to && comes_home(entry, x.array->bytes_of(tile)));
    });
    return may;
  });
}

// Notes which tasks write what the task overwrites: when one of them retires, it may be sent.
void crossings::note_blocked(task_record& t) {
  each_entry_written(t, [&](const coherence_entry& entry) {
    if (!entry.handed.empty()) blocked_[&entry].push_back({&t, t.sequence});
  });
}

std::vector<task_ref> crossings::take_blocked_by(const task_record& t) {
  std::vector<task_ref> all;
  each_entry_written(t, [&](const coherence_entry& entry) {
    const auto known = blocked_.find(&entry);
    if (known == blocked_.end()) return;
    all.insert(all.end(), known->second.begin(), known->second.end());
    blocked_.erase(known);
  });
  return all;
}

// Adds the boxes that other nodes have to send; false if the task cannot be sent.
bool crossings::fill(plan& to, const task_record& t, const waiting& w) const {
  const memory_space there = assignment_.facts()[to.executor].space;
  if (!may_overwrite(t, to.executor)) return false;
  for (const predecessor& p : w.all)
    if (p.task->executor != to.executor && !may_send(p, to.executor)) return false;
  bool fits = true;
  each_box_of(t, [&](const access& x, std::uint32_t tile, const logic::box4& box) {
    const predecessor* last = nullptr;  // the one that writes what the task is to read
    for (const predecessor& p : w.all)
      if (writes_tile(*p.task, *x.array, tile) && (!last || number_of(p.sequence) > number_of(last->sequence)))
        last = &p;
    if (!last || last->task->executor == to.executor) return;
    const std::uint64_t bytes = static_cast<std::uint64_t>(box.volume()) * x.array->spec.element;
    const coherence_entry* const entry = x.array->coherence ? &x.array->coherence->tiles[tile] : nullptr;
    // A copy that only the node has would be overwritten by what it pulls.
    const bool only_there = entry && (entry->dirty_in == there || is_handed_to(*entry, to.executor));
    if (x.mode != access_mode::read || bytes > promised_max || only_there || to.boxes.size() == boxes_max) {
      fits = false;
      return;
    }
    promise& p = to.boxes.emplace_back();
    p.array = x.array;
    p.array_id = x.array->id;
    p.tile = tile;
    p.where = box;
    p.writer = last->sequence;
    p.lender = assignment_.facts()[last->task->executor].space;
    p.borrower = there;
  });
  for (const predecessor& p : w.all) {
    const auto sends = [&](const promise& b) { return b.writer == p.sequence; };
    if (p.task->executor != to.executor && std::ranges::none_of(to.boxes, sends)) return false;
  }
  return fits;
}

// Bytes of what the task touches that the executor has, or is about to write.
std::uint64_t crossings::bytes_there(const task_record& t, const waiting& w, std::size_t executor) const {
  const memory_space there = assignment_.facts()[executor].space;
  std::uint64_t bytes = 0;
  each_box_of(t, [&](const access& x, std::uint32_t tile, const logic::box4& box) {
    bool is = x.array->coherence && x.array->coherence->tiles[tile].cached.contains(there);
    for (const predecessor& p : w.all)
      if (writes_tile(*p.task, *x.array, tile)) is = p.task->executor == executor;
    if (is) bytes += static_cast<std::uint64_t>(box.volume()) * x.array->spec.element;
  });
  return bytes;
}

std::optional<crossings::plan> crossings::find(task_record& t) {
  const waiting* const w = all_of(t);
  if (!w || t.kind != task_kind::call || t.kernel->repeat == purity::once || (t.extra && t.extra->no_pulls)) return {};
  std::optional<plan> best;
  std::uint64_t most = 0;
  const auto look_at = [&](std::size_t i) {
    if (!far_.contains(i)) return;
    plan p{i, {}};
    if (!fill(p, t, *w)) return;
    const std::uint64_t bytes = bytes_there(t, *w, i);
    if (best && bytes <= most) return;
    best = std::move(p);
    most = bytes;
  };
  if (const int only = assignment_.only_for(t); only != logic::executor_set::end) {
    look_at(static_cast<std::size_t>(only));
  } else {
    for (const predecessor& p : w->all) {
      const bool seen = std::any_of(
          w->all.data(), &p, [&](const predecessor& before) { return before.task->executor == p.task->executor; });
      if (!seen && assignment_.may_run(t, p.task->executor)) look_at(p.task->executor);
    }
  }
  if (!best) note_blocked(t);
  return best;
}

// ---- a task is sent -------------------------------------------------------------------------------------------------

// Gives a box the number of one that its node has been promised already, or one of its own.
void crossings::give_number(promise& p) {
  std::vector<promise>& all = promised_[p.writer];
  const auto same = std::ranges::find_if(all, [&](const promise& o) {
    return o.array == p.array && o.tile == p.tile && o.borrower == p.borrower && o.where == p.where;
  });
  p.shared = same != all.end();
  p.number = p.shared ? same->number : 2 * numbers_++ + 1;  // nodes number what they lend themselves with even numbers
  if (!p.shared) all.push_back(p);
}

void crossings::send(const task_record& t, std::vector<promise> boxes) {
  counted_.erase(&t);
  for (promise& p : boxes) give_number(p);
  if (!boxes.empty()) sent_[&t] = std::move(boxes);
}

std::vector<promise> crossings::take_sent(const task_record& t) {
  const auto known = sent_.find(&t);
  if (known == sent_.end()) return {};
  std::vector<promise> boxes = std::move(known->second);
  sent_.erase(known);
  return boxes;
}

}  // namespace troupe::detail
