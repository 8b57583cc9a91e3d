// What this file is for: what is known of a node's tiles when tasks are sent there, fail there or come back.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/remote_node/remote_copies.hpp"

#include <troupe/error.hpp>

namespace troupe::detail {

const wire::array_descriptor* remote_copies::know(array_core& a) {
  const auto [at, is_new] = arrays_.try_emplace(a.id);
  last_ = &at->second;
  if (!is_new) return nullptr;
  at->second.core = &a;
  wire::array_descriptor c;
  c.id = a.id;
  c.rank = a.spec.rank;
  c.size = a.spec.size;
  c.tile = a.spec.tile;
  c.element = a.spec.element;
  c.align = a.spec.align;
  c.name = a.spec.name;
  at->second.shape = std::make_shared<const wire::array_descriptor>(std::move(c));
  return at->second.shape.get();
}

array_core* remote_copies::find(std::uint64_t array) const {
  const auto known = arrays_.find(array);
  return known == arrays_.end() ? nullptr : known->second.core;
}

std::uint64_t remote_copies::note_written(const task_record& t, std::uint64_t job, std::vector<std::uint64_t>& wrote) {
  wrote.clear();
  each_written_of(*this, t, [&](const access& x, copy* c) {
    bring_up_to_date(*c, *x.array, x.tile);
    ++c->version;
    c->last_write = ++writes_;
    wrote.push_back(c->last_write);
    if (!c->dirty) c->first_write = c->last_write;
    c->last_job = c->writer_job = job;
    c->writer = t.sequence;
    c->pulled_from = 0;
    c->whole = c->dirty = true;
    c->in_error = false;
    c->parts.clear();
  });
  return writes_;
}

bool remote_copies::would_spoil(const job& j) const {
  bool any = false;
  auto wrote = j.wrote.begin();
  each_written_of(*this, *j.task, [&](const access&, const copy* c) {
    const std::uint64_t write = *wrote++;
    any = any || (c && c->dirty && c->first_write < write);
  });
  return any;
}

// The tile may have been overwritten by tasks sent since: the versions after the failed write all count one less.
void remote_copies::note_not_written(const job& j, const task_record& t, bool touched, std::vector<tile_of>* spoiled) {
  auto wrote = j.wrote.begin();
  each_written_of(*this, t, [&](const access& x, copy* c) {
    const std::uint64_t write = *wrote++;
    if (write <= c->forgotten_write) return;
    c->writer = 0;
    if (spoiled && c->dirty && c->first_write < write) spoiled->emplace_back(x.array, x.tile);
    --c->version;
    if (touched || c->first_write >= write) c->first_write = std::max(c->first_write, write + 1);
    if (c->first_write > c->last_write) c->forget();
  });
  if (spoiled) forget_read(t);  // what it was to read may not have found room
}

// A part that the task was to change there and send back has failed with the task. This node has what was there before,
// for otherwise it could not have had the part changed.
void remote_copies::forget_read(const task_record& t) {
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    const auto known = x.array ? arrays_.find(x.array->id) : arrays_.end();
    if (known == arrays_.end()) continue;
    const bool sends_back = !logic::is_whole(x) && !logic::uses_copies(x) && x.mode == access_mode::update;
    logic::each_tile_of(x, [&](std::uint32_t tile) {
      const auto c = known->second.tiles.find(tile);
      if (c != known->second.tiles.end() && (!c->second.dirty || sends_back)) c->second.forget();
    });
  }
}

bool remote_copies::is_overwritten(const job& j, const task_record& t, std::vector<overwritten_input>& inputs) const {
  bool is = false;
  for (int i = 0; i < t.access_count; ++i) {
    const access& x = t.accesses[i];
    const auto known = x.array ? arrays_.find(x.array->id) : arrays_.end();
    if (known == arrays_.end()) continue;
    const bool needs = !(logic::is_whole(x) && x.mode == access_mode::write);
    logic::each_tile_of(x, [&](std::uint32_t tile) {
      const auto c = known->second.tiles.find(tile);
      if (c == known->second.tiles.end() || c->second.last_write <= j.last_write) return;
      is = true;
      if (needs && c->second.dirty && c->second.first_write <= j.last_write) inputs.push_back({&t, x.array, tile});
    });
  }
  return is;
}

bool remote_copies::has_current(const array_core& a, std::uint32_t tile) const {
  const copy* const c = find_copy(a.id, tile);
  return c && c->whole && is_current(c->version, known_version(a, tile));
}

std::optional<remote_copies::version_there> remote_copies::only_version(const array_core& a, std::uint32_t tile) const {
  const copy* const c = find_copy(a.id, tile);
  if (!c || !c->whole || !c->dirty || c->in_error || !is_current(c->version, known_version(a, tile))) return {};
  return version_there{c->version, c->last_write};
}

void remote_copies::note_unfilled(std::uint64_t array, std::uint32_t tile) {
  const auto known = arrays_.find(array);
  if (known == arrays_.end()) return;  // forgotten meanwhile
  if (tile >= known->second.core->tile_count) throw error(errc::protocol_error, "a tile that its array does not have");
  if (copy& c = known->second.tiles[tile]; !c.dirty) c.forget();
}

void remote_copies::note_in_error(std::uint64_t array, std::uint32_t tile) {
  if (const auto known = arrays_.find(array); known != arrays_.end()) known->second.tiles[tile].in_error = true;
}

}  // namespace troupe::detail
