// What this file is for: which groups of readers are formed, and how long they last.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/data/read_groups.hpp"

#include <algorithm>
#include <utility>

#include "actors/logic/data/region.hpp"
#include "actors/logic/data/tile_history.hpp"

namespace troupe::detail {

void read_group::note_writers() {
  numbers_.clear();
  for (const task_ref& w : writers) numbers_.push_back(w.sequence);
  if (!std::ranges::is_sorted(numbers_)) std::ranges::sort(numbers_);
}

bool read_group::is_writer(const task_ref& r) const { return std::ranges::binary_search(numbers_, r.sequence); }

void read_group::clear() {
  writers.clear();
  gate = {};
  readers.clear();
  joined = 0;
  complete = false;
  used_early = false;
  numbers_.clear();
  compared_ = 0;
}

namespace {
bool reads_all(const access& x) {
  return x.array && x.where && x.mode == access_mode::read && logic::view_box(*x.where) == x.array->whole_box();
}
}  // namespace

std::span<const access> read_groups::reads_from(const task_record& t, int first) {
  const access* const begin = t.accesses + first;
  const access* const end = t.accesses + t.access_count;
  if (begin != end && reads_all(*begin)) return {begin, 1};
  return {begin, std::find_if_not(begin, end, is_tile_read)};
}

bool read_groups::is_many(std::span<const access> reads) {
  return reads.size() >= tiles_min || (reads.size() == 1 && reads[0].where && reads[0].array->tile_count >= tiles_min);
}

// Returns the reads that are the list; none: they do not contain it.
std::span<const access> read_groups::part_of(std::span<const access> reads, const list& l) {
  const std::size_t n = l.entries.size();
  if (n == 0 || n > reads.size()) return {};
  const auto last = reads.end() - static_cast<std::ptrdiff_t>(n);
  const auto at = std::find_if(reads.begin(), last + 1, [&](const access& x) { return l.entries.front().is(x); });
  if (at > last) return {};
  const std::span<const access> part(at, n);
  const bool is = std::ranges::equal(l.entries, part, [](const entry& e, const access& x) { return e.is(x); });
  return is ? part : std::span<const access>();
}

// Returns the longest row of reads that are in the same places of the others.
std::span<const access> read_groups::common(std::span<const access> reads, const std::vector<entry>& others) {
  std::span<const access> longest;
  const std::size_t n = std::min(reads.size(), others.size());
  for (std::size_t first = 0; first < n;) {
    std::size_t end = first;
    while (end < n && others[end].is(reads[end])) ++end;
    if (end - first > longest.size()) longest = reads.subspan(first, end - first);
    first = end + 1;
  }
  return longest;
}

read_groups::found read_groups::known(std::size_t at, std::span<const access> reads) {
  missed_ = 0;
  asked_ = at;
  list& l = lists_[at];
  if (l.group && l.group->complete) return {reads, l.group};
  if (l.group) judge(l);
  worth_ = l.skip == 0;
  if (!worth_) --l.skip;
  return {reads, nullptr};
}

read_groups::found read_groups::find(std::span<const access> reads) {
  worth_ = false;
  if (!is_many(reads) || (missed_ >= missed_max && ++missed_ % looked_at != 0)) return {{}, nullptr};
  for (std::size_t i = 0; i < lists_max; ++i)
    if (const std::span<const access> part = part_of(reads, lists_[i]); !part.empty()) return known(i, part);
  const auto note = [](std::vector<entry>& to, std::span<const access> from) {
    to.clear();
    for (const access& x : from) to.push_back({x.array, x.where ? all_tiles : x.tile});
  };
  std::span<const access> part;
  std::size_t other = 0;
  for (std::size_t i = 0; i < unknown_max && !is_many(part); ++i) part = common(reads, unknown_[other = i]);
  if (!is_many(part)) {
    ++missed_;
    note(unknown_[std::exchange(unknown_next_, (unknown_next_ + 1) % unknown_max)], reads);
    return {{}, nullptr};
  }
  asked_ = std::exchange(next_, (next_ + 1) % lists_max);
  list& l = lists_[asked_];
  if (l.group) judge(l);
  note(l.entries, part);
  l.skip = 0;
  l.skip_next = 1;
  // A part that is common to two need not be so to others.
  worth_ = part.size() == reads.size() && part.size() == unknown_[other].size();
  return {part, nullptr};
}

read_groups::found read_groups::find_again(const task_record& t, int first) {
  const std::vector<entry>& all = lists_[asked_].entries;
  const access* const begin = t.accesses + first;
  if (all.empty() || all.size() > static_cast<std::size_t>(t.access_count - first)) return {{}, nullptr};
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!all[i].is_read(begin[i])) return {{}, nullptr};
  return known(asked_, {begin, all.size()});
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
  g.clear();
  idle_.push_back(&g);
}

}  // namespace troupe::detail
