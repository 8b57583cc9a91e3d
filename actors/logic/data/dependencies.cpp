// What this file is for: ordering whole tiles, parts of tiles, reductions; poison.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/data/dependencies.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <new>
#include <span>
#include <string>
#include <unordered_set>

#include <troupe/error.hpp>

#include "actors/logic/data/reduction.hpp"
#include "actors/logic/data/region.hpp"

namespace troupe::logic {

using detail::fragment;
using detail::fragment_list;
using detail::link_mode;

namespace {
constexpr bool reads_in(access_mode m) { return m == access_mode::read || m == access_mode::update; }
constexpr bool writes_in(access_mode m) { return m == access_mode::write || m == access_mode::update; }
}  // namespace

std::string name_of(const task_record& t) {
  if (t.extra && !t.extra->options.name.empty()) return t.extra->options.name;
  return t.kernel ? t.kernel->name : "task";
}

// ---- edges ----------------------------------------------------------------------------------------------------------

namespace {
// True if a task has been linked to another one for what is asked now, as the last of its successors. A step of a
// stencil overwrites what those read that it reads from: half of its edges would be there twice.
bool waits_already(const task_record& to, const task_record& from, bool data) {
  if (detail::successors_added(from) == 0) return false;
  const detail::successor newest = detail::newest_successor(from);
  return newest.task == &to && (newest.data || !data);
}
}  // namespace

class dependencies::list_lock {
 public:
  list_lock(const dependencies& d, std::uint64_t sequence)
      : lock_(d.beside_ && detail::series_of(sequence) != d.series_ ? d.beside_ : nullptr) {
    if (lock_) lock_->lock();
  }
  ~list_lock() {
    if (lock_) lock_->unlock();
  }
  list_lock(const list_lock&) = delete;
  list_lock& operator=(const list_lock&) = delete;

 private:
  detail::spin_lock* const lock_;
};

bool dependencies::link(task_ref from, task_record& to, bool data) {
  // Compares numbers, not records: the record may have been reused for this very task.
  if (noted_ && from.sequence != 0 && from.sequence != to.sequence) noted_->emplace_back(from.sequence, to.sequence);
  return add_edge(from, to, data);
}

bool dependencies::add_edge(task_ref from, task_record& to, bool data) {
  if (!alive(from) || from.task == &to) return false;
  const list_lock hold(*this, from.sequence);
  if (detail::is_sealed(*from.task)) return false;
  if (waits_already(to, *from.task, data)) return true;
  const bool early = (to.marks & detail::mark_early) != 0;
  if (added_.size() == added_.capacity()) added_.reserve(2 * added_.size() + 16);  // nothing is thrown halfway
  const std::uint32_t place = detail::add_successor(*from.task, {&to, data, early}, blocks_);
  if (detail::is_shared(*from.task)) added_.push_back({from.task, &to, from.sequence, place});
  linked_.add(from, to);
  if (predecessors_) predecessors_->push_back({from.task, &to, data});
  if (early)
    ++found_;
  else
    to.pending.store(to.pending.load(std::memory_order_relaxed) + 1,
                     std::memory_order_relaxed);  // nobody else writes it
  return true;
}

// Takes back the block that was added to a list which had none when it was sealed: nobody else knows of it.
void dependencies::take_back_block(const added& a) {
  if (a.place < detail::successors_inside) return;
  if (detail::sealed_count(a.from->pending.load(std::memory_order_relaxed)) > detail::successors_inside) return;
  blocks_.give(std::exchange(a.from->more_successors, nullptr));
}

// Takes back the edges from tasks that have released their successors since.
void dependencies::settle() {
  if (added_.empty()) return;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (const added& a : added_) {
    if (detail::is_added(*a.from, a.place)) continue;
    {
      const list_lock hold(*this, a.sequence);
      take_back_block(a);
    }
    if (a.to->marks & detail::mark_early)
      --found_;
    else
      a.to->pending.store(a.to->pending.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  }
  added_.clear();
}

bool dependencies::reaches(task_record& from, const task_record* to) {
  const auto is_meant = [&](const task_record& t) {
    if (to) return &t == to;
    return &t != &from && (!is_internal(t.kind) || t.kind == detail::task_kind::farewell);
  };
  std::unordered_set<const task_record*> seen{&from};
  std::vector<task_record*> open{&from};
  while (!open.empty()) {
    task_record* t = open.back();
    open.pop_back();
    if (is_meant(*t)) return true;
    each_successor(*t, [&](task_record& next, bool) {
      if (seen.insert(&next).second) open.push_back(&next);
    });
  }
  return false;
}

// ---- ordering a new task --------------------------------------------------------------------------------------------

tile_history& dependencies::state_of(array_core& a, std::uint32_t tile) {
  if (!recorded_) return a.states[tile];
  tile_history& s = recorded_->states[{&a, tile}];
  return s;
}

namespace {
// Most tasks read few tiles, and no array of many.
bool may_read_many(const task_record& t) {
  constexpr std::size_t many = detail::read_groups::tiles_min;
  return t.access_count >= many || std::any_of(t.accesses, t.accesses + t.access_count, [](const access& x) {
           return x.array && x.where && x.array->tile_count >= many && x.mode == access_mode::read;
         });
}
}  // namespace

void dependencies::order(task_record& task, std::vector<task_record*>& made) {
  task.sequence = next_sequence();
  named_ = 0;
  joiner_ = &task;
  joined_.clear();
  if (gates_allowed_ && may_read_many(task)) find_groups(task, made);
  if (!(task.marks & detail::mark_early)) {
    order_accesses(task, made);
    return settle();
  }
  detail::share(task);  // a chunk of a for_each comes with a successor
  // Its predecessors may end meanwhile: those that have been found are counted in one step.
  found_ = 0;
  task.pending.store(task.pending.load(std::memory_order_relaxed) + being_ordered, std::memory_order_relaxed);
  order_accesses(task, made);
  settle();
  task.pending.fetch_sub(being_ordered - found_, std::memory_order_acq_rel);
}

void dependencies::order_accesses(task_record& task, std::vector<task_record*>& made) {
  added_.clear();  // an error may have left some
  auto group = joined_.begin();
  for (int i = 0; i < task.access_count; ++i) {
    if (group != joined_.end() && group->first == i) {
      joined_group& g = *group++;
      if (join(task, g)) {
        i += static_cast<int>(g.reads) - 1;
        continue;
      }
    }
    access& x = task.accesses[i];
    if (!x.array) {
      task_record* from = x.task;
      if (const std::uint64_t number = from->sequence.acquire(); number != 0) {
        if (link({from, number}, task, x.link == link_mode::data)) named_ = number;
      } else if (x.link == link_mode::data && from->error)
        around_.fail(task, from->error, false);
      continue;
    }
    if (!recorded_) note_use(task, *x.array);
    if (x.mode == access_mode::reduce) {
      order_reduce(task, x, made);
      continue;
    }
    if (open_of(*x.array)) combine(*x.array, made);
    const bool reads = reads_in(x.mode), writes = writes_in(x.mode);
    if (!x.where) {
      tile_history& s = state_of(*x.array, x.tile);
      if (!s.parts) {
        order_whole(task, s, reads, writes, *x.array, x.tile);
      } else {
        const box4 b = x.array->tile_box(x.tile);
        order_part(task, s, b, b, reads, writes, *x.array);
      }
      continue;
    }
    each_touched(*x.where, [&](const box4& b) {
      x.array->each_tile(b, [&](std::uint32_t t, const box4& tile_box) {
        tile_history& s = state_of(*x.array, t);
        const box4 part = intersect(tile_box, b);
        if (!s.parts && part == tile_box)
          order_whole(task, s, reads, writes, *x.array, t);
        else
          order_part(task, s, tile_box, part, reads, writes, *x.array);
      });
    });
  }
}

// An early task may retire without a turn, and is in no count.
void dependencies::note_use(const task_record& task, array_core& a) {
  if (task.marks & detail::mark_early)
    a.used_early = true;
  else
    ++a.users;
}

// Calls `f(task)` for the last writers of an array and the readers since: all that use it come before these. Ends, and
// returns true, when `f` does.
template <class F>
bool dependencies::any_use(array_core& a, F&& f) {
  const detail::read_group* last = nullptr;  // mostly that of the next tile, too
  for (std::uint32_t i = 0; i < a.tile_count; ++i) {
    tile_history& s = a.states[i];
    if (f(s.writer) || std::any_of(s.readers.begin(), s.readers.end(), f)) return true;
    if (s.group && s.group != std::exchange(last, s.group) &&
        std::any_of(s.group->readers.begin(), s.group->readers.end(), f))
      return true;
    if (s.parts && s.parts->any([&](const fragment& p) { return f(p.task); })) return true;
  }
  return a.open && std::any_of(a.open->contributors.begin(), a.open->contributors.end(), f);
}

bool dependencies::is_used_early(array_core& a) {
  return any_use(a, [&](const task_ref& r) { return alive(r) && !detail::is_sealed(*r.task); });
}

bool dependencies::order_after_early(array_core& a, task_record& t) {
  added_.clear();
  try {
    any_use(a, [&](const task_ref& r) {
      link(r, t, false);
      return false;
    });
  } catch (const std::bad_alloc&) {  // it comes after some, which is enough to look again
    if (added_.empty()) throw;
  }
  settle();
  return t.pending.load(std::memory_order_relaxed) != 0;
}

void dependencies::order_whole(task_record& task, tile_history& s, bool reads, bool writes, array_core& array,
                               std::uint32_t tile) {
  if (s.group && !gates_allowed_) take_from_group(s);
  if (reads) {
    if (!s.valid && s.writer.task != &task) {
      const box4 all = array.tile_box(tile);
      if (recorded_)
        recorded_->effects[&s].read(all, all);
      else
        complain_uninitialized(task, array, all);
    }
    if (s.poison) around_.fail(task, s.poison, false);
  }
  if (!writes) {
    link(s.writer, task, true);
    s.readers.add({&task, task.sequence}, living());
    return;
  }
  if (reads || (s.readers.empty() && !(s.group && s.group->joined != 0))) link(s.writer, task, reads);
  for (const task_ref& r : s.readers)
    if (!linked_.has(r, task) && !comes_after(task, r)) link(r, task, false);
  s.readers.clear();
  if (s.group) leave_group(s, task);
  s.writer = {&task, task.sequence};
  s.valid = true;
  s.poison = nullptr;
}

// Orders a task on a part of a tile. A tile has one writer, or boxes of several (`parts`).
void dependencies::order_part(task_record& task, tile_history& s, const box4& tile_box, const box4& where, bool reads,
                              bool writes, array_core& array) {
  if (!s.parts) {
    // A read of a part orders exactly as a read of the whole, as long as the whole has one writer.
    if (!writes && s.valid) {
      if (s.poison) around_.fail(task, s.poison, false);
      link(s.writer, task, true);
      s.readers.add({&task, task.sequence}, living());
      return;
    }
    divide(s, tile_box);
  }
  fragment_list& parts = *s.parts;
  const bool whole = where == tile_box;
  const bool look = whole ? parts.are_many() : parts.is_time_to_look();
  if (look) parts.remove_if([this](const fragment& f) { return !f.writes && !alive(f.task); });
  if (reads && !is_written(parts, where)) {
    if (recorded_)
      recorded_->effects[&s].read(where, tile_box, [&](auto&& f) {
        bool goes_on = true;
        parts.each_in(where, [&](const fragment& p) {
          if (goes_on && p.writes) goes_on = f(p.where);
        });
      });
    else
      complain_uninitialized(task, array, where);
  }
  link_part(task, parts, where, reads, writes);
  if (!writes) {
    parts.add({where, {&task, task.sequence}, false, nullptr, parts.next_age()});
  } else if (whole) {  // the tile has one writer again
    s.parts.reset();
    s.readers.clear();
    s.writer = {&task, task.sequence};
    s.valid = true;
    s.poison = nullptr;
    return;
  } else {
    overwrite(parts, where, {&task, task.sequence});
  }
  if (look) unite(s, tile_box);
}

// Links a task to the earlier ones that have accessed a box, but for those that a younger one among these has waited
// for: a writer for the readers that it overlaps, a reader for the writers. Otherwise steps in parts of one tile, of
// which no part is as large as what is read, would each come after all steps before.
void dependencies::link_part(task_record& task, fragment_list& parts, const box4& where, bool reads, bool writes) {
  constexpr std::size_t compared = 64;
  std::array<const fragment*, compared> writers, readers, linked;
  std::size_t writer_count = 0, reader_count = 0, linked_count = 0;
  bool any_waited_for = false;
  const auto link_to = [&](const fragment& f) {
    if (reads && f.writes && f.poison) around_.fail(task, f.poison, false);
    link(f.task, task, reads && f.writes);
  };
  const auto waited_for = [](std::span<const fragment*> by, const fragment& f) {
    return std::any_of(by.begin(), by.end(),
                       [&](const fragment* y) { return y->age > f.age && overlap(y->where, f.where); });
  };
  parts.each_in(where, [&](const fragment& f) {
    if (f.writes) {
      if (writer_count < compared)
        writers[writer_count++] = &f;
      else
        link_to(f);
    } else if (!writes) {
      any_waited_for = any_waited_for || f.writer != 0 || waits_for(task, f.task);
    } else if (reader_count++ < compared) {
      readers[reader_count - 1] = &f;
    }
  });
  const auto link_reader = [&](const fragment& r) {
    if (waited_for(std::span(writers).first(writer_count), r)) return;
    link_to(r);
    if (linked_count < compared) linked[linked_count++] = &r;
  };
  if (reader_count <= compared)
    for (std::size_t i = 0; i < reader_count; ++i) link_reader(*readers[i]);
  else
    parts.each_in(where, [&](const fragment& f) {
      if (!f.writes) link_reader(f);
    });
  for (std::size_t i = 0; i < writer_count; ++i)
    if (reads || !waited_for(std::span(linked).first(linked_count), *writers[i])) link_to(*writers[i]);
  // A reader comes after the readers for which one of its writers has waited, and after those that it waits for itself.
  // It stands for them where they are listed still, as in a border that is never written: otherwise each step would
  // leave its own.
  if (any_waited_for)
    parts.remove_in(where, [&](const fragment& f) {
      if (f.writes || !where.contains(f.where)) return false;
      return waits_for(task, f.task) ||
             (f.writer != 0 && std::any_of(writers.begin(), writers.begin() + static_cast<std::ptrdiff_t>(writer_count),
                                           [&](const fragment* w) {
                                             return w->age == f.writer ||
                                                    (w->line != 0 && w->line == f.line && w->age > f.writer);
                                           }));
    });
}

// Makes boxes of a tile that had one writer, or none.
void dependencies::divide(tile_history& s, const box4& tile_box) {
  if (s.group) take_from_group(s);
  s.parts = std::make_unique<fragment_list>(tile_box);
  if (s.valid) s.parts->add({tile_box, s.writer, true, s.poison, s.parts->next_age()});
  for (const task_ref& r : s.readers) s.parts->add({tile_box, r, false, nullptr, s.parts->next_age()});
  s.readers.clear();
  s.writer = {};
  s.poison = nullptr;
  s.valid = false;
}

// Returns true if every element of the box has a writer.
bool dependencies::is_written(fragment_list& parts, const box4& where) {
  index_t covered = 0;
  parts.each_in(where, [&](const fragment& f) {
    if (f.writes) covered += intersect(f.where, where).volume();
  });
  return covered == where.volume();
}

// Cuts the boxes of older accesses: who comes next there waits for the new writer, which has waited for them. Readers
// are not cut into many, as each small write would cut a large one again.
void dependencies::overwrite(fragment_list& parts, const box4& where, const task_ref& writer) {
  constexpr std::size_t readers_halved = 256;  // up to so many boxes in the tile
  const std::uint64_t age = parts.next_age();
  std::uint64_t line = age;
  parts.each_in(where, [&](const fragment& f) {
    if (f.writes && f.line != 0 && where.contains(f.where)) line = f.line;
  });
  std::vector<fragment> cut;
  parts.remove_in(where, [&](fragment& f) {
    if (!f.writes) {
      f.writer = age;
      f.line = line;
    }
    const std::size_t before = cut.size();
    subtract(f.where, where, [&](const box4& rest) {
      cut.push_back({rest, f.task, f.writes, f.poison, f.age, f.writer, f.writes ? 0 : f.line});
    });
    const std::size_t boxes = cut.size() - before;
    if (f.writes || boxes < 2 || (boxes == 2 && parts.size() < readers_halved)) return true;
    cut.resize(before);
    return false;
  });
  for (fragment& f : cut) parts.add(std::move(f));
  parts.add({where, writer, true, nullptr, age, 0, line});
}

// Makes parts that are all written, finished and without failure one valid tile again, with the readers that are left.
void dependencies::unite(tile_history& s, const box4& tile_box) {
  index_t written = 0;
  const bool in_use = s.parts->any([&](const fragment& f) {
    if (!f.writes) return false;
    written += f.where.volume();
    return alive(f.task) || f.poison;
  });
  if (in_use || written != tile_box.volume()) return;
  const auto old = std::move(s.parts);
  s.valid = true;
  s.writer = {};
  old->each([&](const fragment& f) {
    if (!f.writes && alive(f.task)) s.readers.add(f.task, living());
  });
}

void dependencies::complain_uninitialized(task_record& task, const array_core& array, const box4& where) {
  for (int i = 0; i < task.access_count; ++i)
    if (const access& x = task.accesses[i];
        x.array == &array && x.link == link_mode::order && array.tile_box(x.tile).contains(where))
      return;
  std::string at;
  for (int d = 0; d < array.spec.rank; ++d)
    at += (d ? " x [" : "[") + std::to_string(where.lo[d]) + "," + std::to_string(where.hi[d]) + ")";
  const std::string name = name_of(task);
  around_.fail(
      task,
      std::make_exception_ptr(task_failed(errc::uninitialized_read,
                                          "task '" + name + "': array '" + array.spec.name + "': nobody wrote all of " +
                                              at + " before it was read; write or fill it first",
                                          name, "", name, 0, nullptr)),
      true);
}

void dependencies::forget(array_core& a) {
  if (a.open) reduced_outside_.erase(&a);
  for (std::uint32_t i = 0; i < a.tile_count; ++i)
    if (a.states[i].group) groups_.leave(a.states[i]);
}

// ---- groups of readers ----------------------------------------------------------------------------------------------

// Finds the groups that a task is to join, and forms those that it pays to form.
void dependencies::find_groups(const task_record& task, std::vector<task_record*>& made) {
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
    if (!g && groups_.is_worth_forming() && may_gather(list.reads)) g = form_group(list.reads, made);
    if (g) joined_.push_back({static_cast<int>(list.reads.data() - task.accesses), list.reads.size(), g, g->number});
  }
}

// True if the tiles have one writer each, or none that is known, and nothing keeps them from being read.
bool dependencies::may_gather(std::span<const access> reads) {
  bool may = std::ranges::none_of(reads, [](const access& x) { return x.array->open != nullptr; });
  detail::read_groups::each_tile(reads, [&](const array_core& a, std::uint32_t tile) {
    const tile_history& s = a.states[tile];
    may = may && !s.parts && s.valid && !s.poison;
  });
  return may;
}

detail::read_group* dependencies::form_group(std::span<const access> reads, std::vector<task_record*>& made) {
  detail::read_group& g = groups_.form();
  bool any = false;
  detail::read_groups::each_tile(reads, [&](const array_core& a, std::uint32_t tile) {
    tile_history& s = a.states[tile];
    if (s.group == &g) return;  // the list has the tile twice
    if (s.group) take_from_group(s);
    g.writers.push_back(s.writer);
    any = any || (alive(s.writer) && !detail::is_sealed(*s.writer.task));
    detail::read_groups::enter(s, g);
  });
  g.note_writers();
  if (any) {
    task_record* const gate = around_.make_gate();
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
void dependencies::order_gate(task_record& gate, const detail::read_group& g) {
  added_.clear();
  gate.sequence = next_sequence();
  gate.marks |= detail::mark_early;
  detail::share(gate);
  found_ = 0;
  gate.pending.store(gate.pending.load(std::memory_order_relaxed) + being_ordered, std::memory_order_relaxed);
  for (const task_ref& w : g.writers) add_edge(w, gate, true);
  settle();
  gate.pending.fetch_sub(being_ordered - found_, std::memory_order_acq_rel);
}

// Orders the reads of a group; false if it is not complete any more, as the task has changed a tile of it itself.
bool dependencies::join(task_record& task, joined_group& j) {
  detail::read_group& g = *j.group;
  if (!g.complete || g.number != j.number) return false;
  if (noted_)
    for (const task_ref& w : g.writers)
      if (w.sequence != 0) noted_->emplace_back(w.sequence, task.sequence);
  if (const bool early = (task.marks & detail::mark_early) != 0; !early || !g.used_early) {
    const std::span<const access> reads(task.accesses + j.first, j.reads);
    for (const access& x : reads) note_use(task, *x.array);
    g.used_early = g.used_early || early;
  }
  if (g.gate.task) add_edge(g.gate, task, true);
  g.readers.add({&task, task.sequence}, living());
  ++g.joined;
  j.joined = true;
  return true;
}

// True if the task comes after the other one, which has not ended, because of what it has read in groups.
bool dependencies::comes_after(const task_record& t, const task_ref& r) const {
  return &t == joiner_ && std::ranges::any_of(joined_, [&](const joined_group& j) {
    return j.joined && j.group->number == j.number && alive(j.group->gate) && j.group->is_writer(r);
  });
}

// Has the writer of a tile come after those who have read it in a group.
void dependencies::leave_group(tile_history& s, task_record& writer) {
  std::span<const task_ref> left(s.group->readers.begin(), s.group->readers.end());
  for (const joined_group& j : joined_) {
    if (&writer != joiner_ || !j.joined || j.group->number != j.number) continue;
    const auto counts = [&](const task_ref& r) { return noted_ || alive(r); };
    if (const std::span<const task_ref> some = j.group->beside_writers(*s.group, counts); some.size() < left.size())
      left = some;
  }
  for (const task_ref& r : left)
    if (!linked_.has(r, writer) && !comes_after(writer, r)) link(r, writer, false);
  groups_.leave(s);
}

// Lists the readers of a group at one of its tiles, which leaves it.
void dependencies::take_from_group(tile_history& s) {
  for (const task_ref& r : s.group->readers)
    if (alive(r)) s.readers.add(r, living());
  groups_.leave(s);
}

// ---- reductions -----------------------------------------------------------------------------------------------------

void dependencies::order_reduce(task_record& task, access& x, std::vector<task_record*>& combines) {
  array_core& a = *x.array;
  const box4 where = view_box(*x.where);
  const detail::combine_fn op = x.where->combiner;
  detail::reduction*& open = open_of(a);
  if (open && (open->combiner != op || open->where != where)) combine(a, combines);
  if (!open) {
    auto* r = new detail::reduction;
    r->id = recorded_ ? 0 : ++reductions_;
    r->combiner = op;
    r->where = where;
    r->element = a.spec.element;
    r->identity = x.where->fill;
    if (!recorded_ && a.is_borrowed()) reduced_outside_.insert(&a);
    open = r;
    // Groups are not joined any more: the next reader has the partials combined.
    if (!recorded_)
      a.each_tile(where, [&](std::uint32_t tile, const box4&) {
        if (detail::read_group* const g = a.states[tile].group) g->complete = false;
      });
  }
  open->contributors.add({&task, task.sequence}, living());
  x.where->partials = open;  // executors find the partials here
}

void dependencies::combine(array_core& a, std::vector<task_record*>& combines) {
  detail::reduction*& open = open_of(a);
  detail::reduction* r = open;
  task_record* t = around_.make_combine(a, *r);
  if (!recorded_) reduced_outside_.erase(&a);
  open = nullptr;
  t->sequence = next_sequence();
  for (const task_ref& c : r->contributors) link(c, *t, true);
  if (r->poison) around_.fail(*t, r->poison, false);
  // The array's earlier contents are combined too where they are valid; elsewhere the partials stand alone. So the
  // combine task is ordered as an update that does not insist on initialised contents.
  if (!recorded_) ++a.users;
  a.each_tile(r->where, [&](std::uint32_t tile, const box4& tile_box) {
    tile_history& s = state_of(a, tile);
    const box4 part = intersect(tile_box, r->where);
    const bool whole_tile = part == tile_box;
    bool had = s.valid;
    if (s.parts) {
      box_list missing{part};
      s.parts->each_in(part, [&](const fragment& f) {
        if (f.writes) missing = without(missing, f.where);
      });
      had = missing.empty();
      r->fresh.insert(r->fresh.end(), missing.begin(), missing.end());
    } else if (!had) {
      r->fresh.push_back(part);
    }
    if (recorded_) {  // a run needs the array's contents; order() below notes the read
      r->fresh.clear();
      had = true;
    }
    if (!s.parts && whole_tile)
      order_whole(*t, s, had, true, a, tile);
    else
      order_part(*t, s, tile_box, part, had, true, a);
  });
  combines.push_back(t);
}

void dependencies::combine_recorded(std::vector<task_record*>& combines) {
  std::vector<array_core*> arrays;
  for (const auto& [array, r] : recorded_->open)
    if (r) arrays.push_back(array);
  for (array_core* a : arrays) combine(*a, combines);
}

// ---- failure --------------------------------------------------------------------------------------------------------

void dependencies::poison_outputs(task_record& task) {
  for (int i = 0; i < task.access_count; ++i) {
    const access& x = task.accesses[i];
    if (!x.array) continue;
    if (x.mode == access_mode::reduce) {
      detail::reduction* open = open_of(*x.array);
      if (open && open == x.where->partials) open->poison = task.error;
      continue;
    }
    if (!writes_in(x.mode)) continue;
    const auto mark = [&](tile_history& s) {
      if (s.group) s.group->complete = false;
      if (!s.parts) {
        if (s.writer.task == &task && s.writer.sequence == task.sequence) s.poison = task.error;
        return;
      }
      s.parts->each([&](fragment& f) {
        if (f.writes && f.task.task == &task && f.task.sequence == task.sequence) f.poison = task.error;
      });
    };
    if (!x.where) {
      mark(state_of(*x.array, x.tile));
    } else {
      each_touched(*x.where, [&](const box4& b) {
        x.array->each_tile(b, [&](std::uint32_t t, const box4&) { mark(state_of(*x.array, t)); });
      });
    }
  }
}

}  // namespace troupe::logic
