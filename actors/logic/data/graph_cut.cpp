// What this file is for: where the current bytes of each box are while a recorded program is gone through.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/data/graph_cut.hpp"

#include <algorithm>

#include "actors/logic/data/box_list.hpp"

namespace troupe::logic {

graph_cut::graph_cut(const std::vector<cut_call>& calls) : told_(calls.size()) {
  find_homes(calls);
  for (std::uint32_t i = 0; i < calls.size(); ++i) {
    const cut_call& c = calls[i];
    for (const std::uint32_t before : c.after) bring_end_of(calls, before, c.part);
    for (const cut_piece& p : c.pieces)
      if (p.reads) bring(c.part, p);
    for (const cut_piece& p : c.pieces)
      if (p.writes) note_written(c.part, p);
    steps_.push_back({false, i});
  }
  bring_all_home();
}

std::optional<std::uint32_t> graph_cut::home_of(std::uint32_t array, std::uint32_t tile) const {
  const auto t = tiles_.find(key(array, tile));
  if (t == tiles_.end()) return {};
  return t->second.home;
}

void graph_cut::find_homes(const std::vector<cut_call>& calls) {
  for (const cut_call& c : calls)
    for (const cut_piece& p : c.pieces)
      if (p.writes && tiles_.try_emplace(key(p.array, p.tile), tile_parts{c.part, {}}).second)
        order_.push_back(key(p.array, p.tile));
}

void graph_cut::cross(const crossing& c) {
  steps_.push_back({true, static_cast<std::uint32_t>(crossings_.size())});
  crossings_.push_back(c);
}

// Has the part of the box that is not current there sent to a part that is about to read it.
void graph_cut::bring(std::uint32_t part, const cut_piece& p) {
  const auto found = tiles_.find(key(p.array, p.tile));
  if (found == tiles_.end()) return;
  tile_parts& t = found->second;
  box_list at_home{p.where};
  std::vector<fragment> now;
  for (fragment& f : t.elsewhere) {
    if (!overlap(f.where, p.where)) {
      now.push_back(f);
      continue;
    }
    at_home = without(at_home, f.where);
    if (f.parts.contains(part)) {
      now.push_back(f);
      continue;
    }
    const box4 both = intersect(f.where, p.where);
    cross({f.writer, part, p.array, p.tile, both});
    subtract(f.where, both, [&](const box4& left) { now.push_back({left, f.parts, f.writer}); });
    f.parts.insert(part);
    now.push_back({both, f.parts, f.writer});
  }
  if (part != t.home)
    for (const box4& b : at_home) {
      cross({t.home, part, p.array, p.tile, b});
      fragment& f = now.emplace_back(fragment{b, {}, t.home});
      f.parts.insert(t.home);
      f.parts.insert(part);
    }
  t.elsewhere = std::move(now);
}

// Notes that a box is current only in the part that has written it.
void graph_cut::note_written(std::uint32_t part, const cut_piece& p) {
  tile_parts& t = tiles_.at(key(p.array, p.tile));
  std::vector<fragment> now;
  for (const fragment& f : t.elsewhere) {
    if (overlap(f.where, p.where))
      subtract(f.where, p.where, [&](const box4& left) { now.push_back({left, f.parts, f.writer}); });
    else
      now.push_back(f);
  }
  if (part != t.home) {
    fragment& f = now.emplace_back(fragment{p.where, {}, part});
    f.parts.insert(part);
  }
  t.elsewhere = std::move(now);
}

void graph_cut::bring_end_of(const std::vector<cut_call>& calls, std::uint32_t call, std::uint32_t part) {
  const std::uint32_t from = calls[call].part;
  if (from == part || told_[call].contains(part)) return;
  told_[call].insert(part);
  cross({.from = from, .to = part, .call = call});
}

void graph_cut::bring_all_home() {
  for (const std::uint64_t k : order_) {
    tile_parts& t = tiles_.at(k);
    for (const fragment& f : t.elsewhere)
      if (!f.parts.contains(t.home))
        cross({f.writer, t.home, static_cast<std::uint32_t>(k >> 32), static_cast<std::uint32_t>(k), f.where});
  }
}

}  // namespace troupe::logic
