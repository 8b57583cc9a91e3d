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
#include "actors/protocol/task_name.hpp"

namespace troupe::logic {

using detail::fragment;
using detail::fragment_list;
using detail::link_mode;

namespace {
constexpr bool reads_in(access_mode m) { return m == access_mode::read || m == access_mode::update; }
constexpr bool writes_in(access_mode m) { return m == access_mode::write || m == access_mode::update; }

// True of a view of the program's. Those of a node service bring what others have written: if they fail, it is missing.
bool is_view(const task_record& t) {
  return t.kind == detail::task_kind::host_access && !(t.extra && t.extra->listener);
}
}  // namespace

// ---- ordering a new task --------------------------------------------------------------------------------------------

tile_history& dependencies::state_of(array_core& a, std::uint32_t tile) {
  if (!recorded_) return a.states[tile];
  tile_history& s = recorded_->states[{&a, tile}];
  return s;
}

void dependencies::order(task_record& task, std::vector<task_record*>& made) {
  task.sequence = graph_.next_number();
  named_ = {&task, 0};
  gates_.begin(task, made);
  graph_.begin(task);
  order_accesses(task, made);
  graph_.end(task);
}

void dependencies::order_accesses(task_record& task, std::vector<task_record*>& made) {
  for (int i = 0; i < task.access_count; ++i) {
    if (const std::size_t reads = gates_.join(task, i); reads != 0) {
      i += static_cast<int>(reads) - 1;
      continue;
    }
    access& x = task.accesses[i];
    if (!x.array) {
      task_record* from = x.task;
      if (const std::uint64_t number = from->sequence.acquire(); number != 0) {
        if (graph_.link({from, number}, task, x.link == link_mode::data)) named_.number = number;
      } else if (x.link == link_mode::data && from->error)
        around_.fail(task, from->error, false);
      continue;
    }
    if (!recorded_) x.array->note_use((task.marks & detail::mark_early) != 0);
    if (x.mode == access_mode::reduce) {
      order_reduce(task, x, made);
      continue;
    }
    if (open_of(*x.array)) combine(*x.array, made);
    const bool reads = reads_in(x.mode), writes = writes_in(x.mode);
    if (writes && is_view(task) && has_value(task, x)) x.link = link_mode::data;
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
  return any_use(a, [&](const task_ref& r) { return graph_.alive(r) && !detail::is_sealed(*r.task); });
}

bool dependencies::order_after_early(array_core& a, task_record& t) {
  graph_.begin(t);
  try {
    any_use(a, [&](const task_ref& r) {
      graph_.link(r, t, false);
      return false;
    });
  } catch (const std::bad_alloc&) {  // it comes after some, which is enough to look again
    if (!graph_.has_added()) throw;
  }
  graph_.end(t);
  return t.pending.load(std::memory_order_relaxed) != 0;
}

void dependencies::order_whole(task_record& task, tile_history& s, bool reads, bool writes, array_core& array,
                               std::uint32_t tile) {
  if (s.group && !gates_.are_allowed()) gates_.take_out(s);
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
    graph_.link(s.writer, task, true);
    s.readers.add({&task, task.sequence}, graph_.living());
    return;
  }
  if (reads || (s.readers.empty() && !(s.group && s.group->joined != 0))) graph_.link(s.writer, task, reads);
  for (const task_ref& r : s.readers)
    if (!graph_.is_linked(r, task) && !gates_.comes_after(task, r)) graph_.link(r, task, false);
  s.readers.clear();
  if (s.group) gates_.leave(s, task);
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
      graph_.link(s.writer, task, true);
      s.readers.add({&task, task.sequence}, graph_.living());
      return;
    }
    divide(s, tile_box);
  }
  fragment_list& parts = *s.parts;
  const bool whole = where == tile_box;
  const bool look = whole ? parts.are_many() : parts.is_time_to_look();
  if (look) parts.remove_if([this](const fragment& f) { return !f.writes && !graph_.alive(f.task); });
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
    graph_.link(f.task, task, reads && f.writes);
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
  if (s.group) gates_.take_out(s);
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
    return graph_.alive(f.task) || f.poison;
  });
  if (in_use || written != tile_box.volume()) return;
  const auto old = std::move(s.parts);
  s.valid = true;
  s.writer = {};
  old->each([&](const fragment& f) {
    if (!f.writes && graph_.alive(f.task)) s.readers.add(f.task, graph_.living());
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
    if (a.states[i].group) gates_.forget(a.states[i]);
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
  open->contributors.add({&task, task.sequence}, graph_.living());
  x.where->partials = open;  // executors find the partials here
}

void dependencies::combine(array_core& a, std::vector<task_record*>& combines) {
  detail::reduction*& open = open_of(a);
  detail::reduction* r = open;
  task_record* t = around_.make_combine(a, *r);
  if (!recorded_) reduced_outside_.erase(&a);
  open = nullptr;
  t->sequence = graph_.next_number();
  for (const task_ref& c : r->contributors) graph_.link(c, *t, true);
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

// Calls `f(history, box of the tile, box of it)` for what an access touches.
template <class F>
void dependencies::each_piece(const access& x, F&& f) {
  if (!x.where) {
    const box4 b = x.array->tile_box(x.tile);
    return f(state_of(*x.array, x.tile), b, b);
  }
  each_touched(*x.where, [&](const box4& b) {
    x.array->each_tile(
        b, [&](std::uint32_t tile, const box4& all) { f(state_of(*x.array, tile), all, intersect(all, b)); });
  });
}

// True if all that a view is to write has been written and is not in error. It comes directly after those that
// write it still: should one of them fail, that is not so any more (see `retire`).
bool dependencies::has_value(task_record& task, const access& x) {
  bool has = true;
  each_piece(x, [&](tile_history& s, const box4&, const box4& where) {
    if (!s.parts) {
      has = has && s.valid && !s.poison;
      graph_.link(s.writer, task, false);
      return;
    }
    has = has && is_written(*s.parts, where);
    s.parts->each_in(where, [&](const fragment& f) {
      if (!f.writes) return;
      has = has && !f.poison;
      graph_.link(f.task, task, false);
    });
  });
  return has;
}

// True of a view that was never granted and leaves what it was to write as it was, though it has failed itself.
bool dependencies::leaves_all_as_it_was(const task_record& t) {
  return is_view(t) && !(t.marks & detail::mark_open) && t.measured_ns != detail::never_ran &&
         t.accesses[0].link == link_mode::data;
}

// Notes at views that a task before them has failed: what they were to write is not as it was.
void dependencies::note_failure_at_views(const task_record& failed) {
  graph_.each_successor(failed, [&](task_record& next, bool) {
    if (!is_view(next)) return;
    access& x = next.accesses[0];
    if (std::any_of(failed.accesses, failed.accesses + failed.access_count,
                    [&](const access& w) { return w.array == x.array && w.mode != access_mode::read; }))
      x.link = link_mode::none;
  });
}

// Fails a successor that reads what the failed task was to write. Who waits for a gate fails with it, as it would
// without one, whatever else the gate waits for. A chunk that ran and failed is no other task to its join.
void dependencies::fail_successor(const task_record& failed, task_record& next) {
  const bool own = next.kind == detail::task_kind::join && failed.measured_ns != detail::never_ran;
  around_.fail(next, failed.error, own);
  if (next.kind == detail::task_kind::gate)
    graph_.each_successor(next, [&](task_record& t, bool) { around_.fail(t, failed.error, false); });
}

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
    each_piece(x, [&](tile_history& s, const box4&, const box4&) { mark(s); });
  }
}

}  // namespace troupe::logic
