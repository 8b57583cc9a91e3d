// What this file is for: which groups of readers are formed, and how long they last.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/data/read_groups.hpp"

#include <algorithm>
#include <utility>

#include "actors/logic/data/tile_history.hpp"

namespace troupe::detail {

namespace {
bool is_same(const task_ref& a, const task_ref& b) { return a.task == b.task && a.sequence == b.sequence; }
}  // namespace

bool read_group::comes_after(const task_ref& r) const {
  return std::ranges::any_of(writers, [&](const task_ref& w) { return is_same(w, r); });
}

bool read_group::comes_after_readers_of(const read_group& other) {
  if (after == other.number && after_joined == other.joined) return is_after;
  after = other.number;
  after_joined = other.joined;
  // Both are in program order, as a rule.
  auto w = writers.begin();
  is_after = std::all_of(other.readers.begin(), other.readers.end(), [&](const task_ref& r) {
    w = std::find_if(w, writers.end(), [&](const task_ref& x) { return is_same(x, r); });
    return w != writers.end();
  });
  return is_after;
}

std::span<const access> read_groups::reads_from(const task_record& t, int first) {
  int end = first;
  const auto reads_tile = [](const access& x) { return x.array && !x.where && x.mode == access_mode::read; };
  while (end < t.access_count && reads_tile(t.accesses[end])) ++end;
  return {t.accesses + first, static_cast<std::size_t>(end - first)};
}

bool read_groups::is_of(const list& l, std::span<const access> reads) {
  return std::ranges::equal(l.tiles, reads,
                            [](const tile& a, const access& x) { return a.array == x.array && a.index == x.tile; });
}

read_group* read_groups::find(std::span<const access> reads) {
  const auto known = std::ranges::find_if(lists_, [&](const list& l) { return is_of(l, reads); });
  asked_ = static_cast<std::size_t>(known - lists_.begin());
  if (known != lists_.end()) {
    if (known->group && known->group->complete) return known->group;
    if (known->group) judge(*known);
    worth_ = known->skip == 0;
    if (!worth_) --known->skip;
    return nullptr;
  }
  asked_ = std::exchange(next_, (next_ + 1) % lists_max);
  list& l = lists_[asked_];
  if (l.group) judge(l);
  l.tiles.clear();
  for (const access& x : reads) l.tiles.push_back({x.array, x.tile});
  l.skip = 0;
  l.skip_next = 1;
  worth_ = false;
  return nullptr;
}

// Parts a list from its group, which had many readers or few.
void read_groups::judge(list& l) {
  read_group& g = *std::exchange(l.group, nullptr);
  g.list = none;
  if (g.joined >= readers_min) {
    l.skip_next = 1;
  } else {
    l.skip = l.skip_next;
    l.skip_next = std::min(2 * l.skip_next, skipped_max);
  }
  if (g.inside == 0) give_back(g);
}

read_group& read_groups::form() {
  list& l = lists_[asked_];
  if (l.group) judge(l);
  if (idle_.empty()) {
    idle_.reserve(all_.size() + 1);
    all_.push_back(std::make_unique<read_group>());
    idle_.push_back(all_.back().get());
  }
  read_group& g = *idle_.back();
  idle_.pop_back();
  g.number = ++formed_;
  g.list = asked_;
  l.group = &g;
  return g;
}

void read_groups::enter(tile_history& s, read_group& g) {
  if (s.group == &g) return;  // the list has the tile twice
  s.group = &g;
  ++g.inside;
}

void read_groups::leave(tile_history& s) {
  read_group& g = *std::exchange(s.group, nullptr);
  g.complete = false;
  if (--g.inside != 0) return;
  if (g.list != none)
    judge(lists_[g.list]);
  else
    give_back(g);
}

void read_groups::give_back(read_group& g) {
  g.writers.clear();
  g.gate = {};
  g.readers.clear();
  g.joined = 0;
  g.complete = false;
  g.after = 0;
  idle_.push_back(&g);
}

}  // namespace troupe::detail
