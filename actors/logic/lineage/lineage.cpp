// What this file is for: keeping the log of calls as short as the contents of home allow.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/lineage/lineage.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::logic {

namespace {
bool is_newer(std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(a - b) > 0; }
}  // namespace

// ---- events ---------------------------------------------------------------------------------------------------------

void lineage::ran(call&& c) {
  if (c.writes.empty()) return;
  if (free_calls_.empty()) free_calls_.push_back(&logged_.emplace_back());
  logged& l = *free_calls_.back();
  free_calls_.pop_back();
  l.number = ++last_number_;
  l.what = std::move(c.what);
  l.cost_ns = c.cost_ns > 0 ? static_cast<std::uint64_t>(std::llround(c.cost_ns)) : 0;
  l.executor = c.executor;
  cost_ns_ += l.cost_ns;
  changed_site(c.executor).cost_ns += l.cost_ns;
  ++call_count_;
  l.broken = !c.repeatable;
  l.may_be_lost = c.may_be_lost;
  l.why = reexecution_plan::reason::runs_once;
  for (const auto& [name, bytes] : c.kept) {
    known_value& k = know(know(name.array, name.tile), name.version);
    k.kept_bytes = (std::exchange(k.kept, true) ? k.kept_bytes : 0) + bytes;
    kept_bytes_ += bytes;
    check(&k);
  }
  for (const value& v : c.reads) {
    if (l.broken) break;
    known_tile& t = know(v.array, v.tile);
    if (!t.newest && t.overwriting == 0) t.home = v.version;
    note_newest(t, v.version);
    known_value& k = know(t, v.version);
    if (std::exchange(k.seen, l.number) == l.number) continue;
    l.reads.push_back({&k, static_cast<std::uint32_t>(k.readers.size())});
    k.readers.push_back({&l, static_cast<std::uint32_t>(l.reads.size() - 1)});
    check(&k);
  }
  for (const write& w : c.writes) {
    known_tile& t = know(w.what.array, w.what.tile);
    check_version(t, t.newest);
    if (!t.newest || is_newer(w.what.version, *t.newest)) {
      t.bytes = w.bytes;
      t.fetch_worth_ns = w.fetch_worth_ns > 0 ? static_cast<std::uint64_t>(std::llround(w.fetch_worth_ns)) : 0;
      t.at_once = w.at_once;
      t.given_up = false;
      if (std::exchange(t.rests, false) && t.away) {
        link_last(t);
        hurry(t);
      }
    }
    note_newest(t, w.what.version);
    known_value& k = know(t, w.what.version);
    if (k.maker) continue;
    k.maker = &l;
    l.writes.push_back(&k);
    check(&k);
  }
  to_drop_.push_back(&l);  // it is dropped at once if none of its writes is needed
  judge_all();
}

void lineage::leaves_home(std::uint64_t array, std::uint32_t tile) {
  known_tile& t = know(array, tile);
  check_version(t, t.home);
  if (t.newest == t.home) t.given_up = true;  // also for a tile not known before: home had its newest version
  ++t.overwriting;
  t.home.reset();
  judge_all();
}

void lineage::came_home(std::uint64_t array, std::uint32_t tile, std::uint32_t version) {
  known_tile* const t = find(array, tile);
  if (!t) return;
  if (t->overwriting != 0) --t->overwriting;
  if (t->of->forgotten) return tidy(*t);
  check_version(*t, t->home);
  check_version(*t, t->newest);
  t->home = version;
  if (!t->newest || !is_newer(*t->newest, version)) t->given_up = false;
  note_newest(*t, version);
  check_version(*t, version);
  not_asked(*t);
  judge_all();
  if (known_tile* const still = find(array, tile)) {
    if (still->away) hurry(*still);
    tidy(*still);
  }
}

void lineage::stays_away(std::uint64_t array, std::uint32_t tile) {
  known_tile* const t = find(array, tile);
  if (!t) return;
  if (t->overwriting != 0) --t->overwriting;
  t->home.reset();  // some of its bytes may have been overwritten
  tidy(*t);
}

void lineage::overwritten(std::uint64_t array, std::uint32_t tile, std::uint32_t version) {
  known_tile* const t = find(array, tile);
  if (!t) return;
  check_version(*t, t->newest);
  if (!t->newest || is_newer(version, *t->newest)) t->given_up = false;
  note_newest(*t, version);
  not_asked(*t);
  judge_all();
}

void lineage::give_up(std::uint64_t array, std::uint32_t tile) {
  known_tile* const t = find(array, tile);
  if (!t) return;
  t->given_up = true;
  check_version(*t, t->newest);
  not_asked(*t);
  judge_all();
}

void lineage::forget(std::uint64_t array) {
  const auto at = arrays_.find(array);
  if (at == arrays_.end()) return;
  known_array& a = at->second;
  a.forgotten = true;
  for (auto t = a.tiles.begin(); t != a.tiles.end();) {
    known_tile& tile = t->second;
    check_version(tile, tile.home);
    check_version(tile, tile.newest);
    tile.home.reset();
    tile.overwriting = 0;
    not_asked(tile);
    t = tile.values ? std::next(t) : a.tiles.erase(t);
  }
  if (a.tiles.empty()) arrays_.erase(at);
  judge_all();
}

// ---- retained copies ------------------------------------------------------------------------------------------------

std::optional<value> lineage::must_keep(std::uint64_t array, std::uint32_t tile) const {
  const known_tile* const t = find(array, tile);
  if (!t || !t->home) return {};
  const known_value* const v = find(*t, *t->home);
  if (!v || v->kept || v->readers.empty() || !is_at_home(*v)) return {};
  return name_of(*v);
}

std::vector<value> lineage::must_keep(std::uint64_t array) const {
  std::vector<value> all;
  const auto at = arrays_.find(array);
  if (at == arrays_.end()) return all;
  for (const auto& [number, t] : at->second.tiles)
    if (const auto v = must_keep(array, number)) all.push_back(*v);
  return all;
}

bool lineage::kept(const value& what, std::uint64_t bytes) {
  known_value* const v = find(what);
  if (!v || v->kept || v->readers.empty()) return false;
  v->kept = true;
  v->kept_bytes = bytes;
  kept_bytes_ += bytes;
  check(v);
  judge_all();
  return true;
}

std::vector<value> lineage::take_unwanted() {
  std::vector<value> all;
  for (const value& name : std::exchange(unwanted_, {})) {
    known_value* const v = find(name);
    v->unwanted = false;
    if (!v->readers.empty() && !is_at_home(*v)) continue;  // the copy is needed again
    v->kept = false;
    kept_bytes_ -= v->kept_bytes;
    all.push_back(name);
    check(v);
  }
  judge_all();
  return all;
}

// ---- keeping the log short ------------------------------------------------------------------------------------------

std::vector<lineage::tile_of> lineage::to_save(std::uint64_t bytes) {
  std::vector<tile_of> all;
  const auto ask = [&](known_tile& t) {
    unlink(t);
    t.asked = true;
    t.asked_in = t.away_in;
    t.asked_bytes = t.bytes;
    sites_[t.asked_in].asked_bytes += t.bytes;
    all.emplace_back(t.of->id, t.number);
  };
  for (const tile_of& h : std::exchange(hurried_, {})) {
    known_tile* const t = find(h.first, h.second);
    if (t && t->away && !t->asked && is_urgent(*t)) ask(*t);
  }
  const bool too_many = call_count_ > bounds_.calls || kept_bytes_ > bounds_.kept_bytes;
  const auto ask_some = [&](site& p) {
    if (too_many || is_dear(p))
      while (p.first && (p.asked_bytes == 0 || p.asked_bytes + p.first->bytes <= bytes)) ask(*p.first);
  };
  // Sites that have not changed since the last call need no second look.
  if (too_many)
    for (site& p : sites_) ask_some(p);
  else
    changed_.each([&](std::size_t number) { ask_some(sites_[number]); });
  changed_.clear();
  return all;
}

bool lineage::is_dear(const site& p) const {
  return static_cast<double>(p.cost_ns) > std::max(bounds_.cost_ns, static_cast<double>(p.away_ns));
}

bool lineage::is_wanted(const value& name) const {
  const known_value* const v = find(name);
  return v && v->maker && !is_here(*v) && !v->tile->of->forgotten;
}

void lineage::not_saved(std::uint64_t array, std::uint32_t tile, bool at_once) {
  known_tile* const t = find(array, tile);
  if (!t || !t->asked) return;
  t->rests = !at_once;
  not_asked(*t);
  if (t->away) hurry(*t);
}

void lineage::not_asked(known_tile& t) {
  if (!std::exchange(t.asked, false)) return;
  changed_site(t.asked_in).asked_bytes -= t.asked_bytes;
  if (t.away && !t.rests) link_last(t);
}

// True if the tile's newest value should be brought home at once: a broken call wrote it, whose values may not be lost,
// or the write said so.
bool lineage::is_urgent(const known_tile& t) {
  const known_value* const v = t.newest ? find(t, *t.newest) : nullptr;
  return v && v->maker && ((v->maker->broken && !v->maker->may_be_lost) || t.at_once);
}

void lineage::hurry(known_tile& t) {
  if (!t.asked && !t.rests && is_urgent(t)) hurried_.emplace_back(t.of->id, t.number);
}

// ---- known tiles and values -----------------------------------------------------------------------------------------

lineage::known_tile* lineage::find(std::uint64_t array, std::uint32_t tile) const {
  const auto a = arrays_.find(array);
  if (a == arrays_.end()) return nullptr;
  const auto t = a->second.tiles.find(tile);
  return t == a->second.tiles.end() ? nullptr : const_cast<known_tile*>(&t->second);
}

// Searches from the newest value on: callers mostly ask for one of the newest.
lineage::known_value* lineage::find(const known_tile& t, std::uint32_t version) {
  known_value* v = t.values;
  while (v && is_newer(v->version, version)) v = v->older;
  return v && v->version == version ? v : nullptr;
}

lineage::known_value* lineage::find(const value& v) const {
  const known_tile* const t = find(v.array, v.tile);
  return t ? find(*t, v.version) : nullptr;
}

lineage::known_tile& lineage::know(std::uint64_t array, std::uint32_t tile) {
  known_array& a = arrays_[array];
  a.id = array;
  known_tile& t = a.tiles[tile];
  t.of = &a;
  t.number = tile;
  return t;
}

lineage::known_value& lineage::know(known_tile& t, std::uint32_t version) {
  known_value* newer = nullptr;
  known_value* v = t.values;
  while (v && is_newer(v->version, version)) {
    newer = v;
    v = v->older;
  }
  if (v && v->version == version) return *v;
  if (free_values_.empty()) free_values_.push_back(&values_.emplace_back());
  known_value& fresh = *free_values_.back();
  free_values_.pop_back();
  fresh.tile = &t;
  fresh.version = version;
  fresh.newer = newer;
  fresh.older = v;
  fresh.seen = 0;
  (newer ? newer->older : t.values) = &fresh;
  if (v) v->newer = &fresh;
  return fresh;
}

void lineage::note_newest(known_tile& t, std::uint32_t version) {
  if (!t.newest || is_newer(version, *t.newest)) t.newest = version;
}

void lineage::erase(known_value& v) {
  known_tile& t = *v.tile;
  (v.newer ? v.newer->older : t.values) = v.older;
  if (v.older) v.older->newer = v.newer;
  v.needed = false;
  free_values_.push_back(&v);
  tidy(t);
}

// Forgets a tile that no call names, unless it is being overwritten: that must be remembered.
void lineage::tidy(known_tile& t) {
  if (t.values || t.overwriting != 0) return;
  note_away(t);
  not_asked(t);
  known_array& a = *t.of;
  a.tiles.erase(t.number);
  if (a.tiles.empty()) arrays_.erase(a.id);
}

// ---- consequences of a change ---------------------------------------------------------------------------------------

void lineage::check(known_value* v) {
  if (!std::exchange(v->to_check, true)) to_check_.push_back(v);
}

void lineage::check_version(known_tile& t, const std::optional<std::uint32_t>& version) {
  if (!version) return;
  if (known_value* const v = find(t, *version)) check(v);
}

// Judges all values that a change affects before it drops a call: one of them may make the call needed.
void lineage::judge_all() {
  for (;;) {
    while (!to_check_.empty()) {
      known_value* const v = to_check_.back();
      to_check_.pop_back();
      v->to_check = false;
      judge(*v);
    }
    if (to_drop_.empty()) return;
    logged* const c = to_drop_.back();
    to_drop_.pop_back();
    if (c->number != 0 && c->needed == 0) drop(*c);
  }
}

void lineage::judge(known_value& v) {
  note_away(*v.tile);
  const bool here = is_here(v), current = is_current(v);
  const bool needed = v.maker && !here && (current || !v.readers.empty());
  if (needed != v.needed) {
    v.needed = needed;
    if (needed)
      ++v.maker->needed;
    else if (--v.maker->needed == 0)
      to_drop_.push_back(v.maker);
  }
  if (!here && !current && (!v.maker || v.maker->broken))
    while (!v.readers.empty()) break_off(*v.readers.back().call, name_of(v));
  if (v.kept && !v.unwanted && (v.readers.empty() || is_at_home(v))) {
    v.unwanted = true;
    unwanted_.push_back(name_of(v));
  }
  if (!v.maker && !v.kept && v.readers.empty() && !v.to_check) erase(v);
}

void lineage::drop(logged& c) {
  stop_reading(c);
  for (known_value* v : c.writes) {
    v->maker = nullptr;
    check(v);
  }
  c.writes.clear();
  c.what.reset();
  c.number = 0;
  c.broken = false;
  cost_ns_ -= c.cost_ns;
  changed_site(c.executor).cost_ns -= c.cost_ns;
  --call_count_;
  free_calls_.push_back(&c);
}

// Marks a call as broken: it cannot be repeated any more.
void lineage::break_off(logged& c, const value& lacks) {
  c.broken = true;
  c.why = reexecution_plan::reason::gone;
  c.lacks = lacks;
  stop_reading(c);
  c.what.reset();
  for (known_value* v : c.writes) {
    check(v);
    if (v->tile->away) hurry(*v->tile);
  }
}

void lineage::stop_reading(logged& c) {
  for (const read_link& r : c.reads) {
    known_value& v = *r.what;
    const reader last = v.readers.back();
    v.readers[r.index] = last;
    last.call->reads[last.read].index = r.index;
    v.readers.pop_back();
    check(&v);
  }
  c.reads.clear();
}

// ---- tiles with their newest bytes on a node only -------------------------------------------------------------------

void lineage::note_away(known_tile& t) {
  const known_value* const v = t.newest ? find(t, *t.newest) : nullptr;
  const bool away = v && v->maker && !is_here(*v) && is_current(*v);
  if (!away && !t.away) return;
  const std::uint16_t in = away ? v->maker->executor : t.away_in;
  if (t.away) changed_site(t.away_in).away_ns -= t.away_ns;
  t.away_ns = away ? t.fetch_worth_ns : 0;
  changed_site(in).away_ns += t.away_ns;
  if (away && t.away && in == t.away_in) return;
  unlink(t);
  if (!t.away) t.rests = false;
  t.away = away;
  t.away_in = in;
  if (!away || t.rests) return;
  if (!t.asked) link_last(t);
  hurry(t);
}

void lineage::link_last(known_tile& t) {
  if (std::exchange(t.listed, true)) return;
  site& p = changed_site(t.away_in);
  t.before = p.last;
  t.after = nullptr;
  (p.last ? p.last->after : p.first) = &t;
  p.last = &t;
}

void lineage::unlink(known_tile& t) {
  if (!std::exchange(t.listed, false)) return;
  site& p = sites_[t.away_in];
  (t.before ? t.before->after : p.first) = t.after;
  (t.after ? t.after->before : p.last) = t.before;
}

}  // namespace troupe::logic
