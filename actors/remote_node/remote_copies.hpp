// What this file is for: which bytes of this node's arrays are on another one, and in which versions.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/logic/data/array_core.hpp"
#include "actors/logic/data/box_list.hpp"
#include "actors/logic/data/directory.hpp"
#include "actors/memory/host_tiles.hpp"
#include "actors/remote_node/job.hpp"
#include "actors/wire/task_messages.hpp"

namespace troupe::detail {

/// Keeps what is known of the tiles that a node has: their versions, which parts are there, what only that node has.
/// Writes that are sent there are numbered; what is known changes when a task is sent, and is taken back when the task
/// fails.
///
/// A part of a node's actor, under the actor's lock. It reads the versions of the directory (coherence_entry::version)
/// and changes nothing outside itself. Where it has to know whether a job is still under way it gets a function
/// `bool runs(std::uint64_t job)`.
class remote_copies {
 public:
  using tile_of = std::pair<array_core*, std::uint32_t>;

  // ---- arrays -------------------------------------------------------------------------------------------------------
  /// Notes that the node is to know an array. Returns the descriptor to send if it has not heard of the array, else
  /// null.
  const wire::array_descriptor* know(array_core&);
  bool empty() const { return arrays_.empty(); }
  void clear() {
    arrays_.clear();
    last_ = nullptr;
  }
  /// Returns the array, or null if the node does not know it.
  array_core* find(std::uint64_t array) const;
  /// Returns the descriptor of an array that the node knows.
  const std::shared_ptr<const wire::array_descriptor>& shape(std::uint64_t array) const {
    return arrays_.at(array).shape;
  }
  /// Forgets an array. False, and nothing changes, if the node does not know it.
  bool forget(std::uint64_t array) {
    last_ = nullptr;
    return arrays_.erase(array) != 0;
  }
  /// Counts transfers of an array's tiles that are on their way home: until they end, its memory must stay.
  void begins_home(std::uint64_t array) { ++arrays_.at(array).coming_home; }
  void ends_home(std::uint64_t array) { --arrays_.at(array).coming_home; }
  bool is_coming_home(std::uint64_t array) const {
    const auto known = arrays_.find(array);
    return known != arrays_.end() && known->second.coming_home != 0;
  }

  // ---- a task is sent -----------------------------------------------------------------------------------------------
  /// Calls missing(tile, box, in_use) for each box of an array, which the node knows, that the job touches and that is
  /// not there; from then on it is. `in_use`: another job there still uses the tile. Never more than the job touches:
  /// others may be changing the rest of the tile, here or there.
  template <class Runs, class Missing>
  void need(const array_core& a, const logic::box4& touched, std::uint64_t job, Runs&& runs, Missing&& missing) {
    known_array& known = at(a);
    a.each_tile(touched, [&](std::uint32_t tile, const logic::box4& all) {
      const logic::box4 part = intersect(touched, all);
      copy& c = known.tiles[tile];
      bring_up_to_date(c, a, tile);
      const bool in_use = c.last_job != job && runs(c.last_job);
      c.last_job = job;
      if (c.whole) return;
      if (c.parts.empty()) {
        missing(tile, part, in_use);
        c.whole = part == all;
        if (!c.whole) c.parts.push_back(part);
      } else {
        for (const logic::box4& have : c.parts)
          if (have.contains(part)) return;
        const logic::box_list fresh = logic::without(logic::box_list{part}, c.parts);
        if (fresh.empty()) return;
        for (const logic::box4& b : fresh) missing(tile, b, in_use);
        c.parts.insert(c.parts.end(), fresh.begin(), fresh.end());
        logic::unite(c.parts);
        c.whole = logic::volume(c.parts) == all.volume();
        if (c.whole) c.parts.clear();
        if (std::ssize(c.parts) > parts_max) c.parts.erase(c.parts.begin(), c.parts.end() - parts_max);
      }
      c.pulled_from = 0;
    });
  }
  /// Notes that the job was told to ask for bytes of a tile.
  template <class Runs>
  void note_asker(const array_core& a, std::uint32_t tile, std::uint64_t job, Runs&& runs) {
    std::vector<std::uint64_t>& asks = at(a).tiles[tile].asks;
    if (asks.size() >= asks_max) std::erase_if(asks, [&](std::uint64_t id) { return !runs(id); });
    if (asks.empty() || asks.back() != job) asks.push_back(job);
  }
  /// Returns the last job under way that was told to ask for bytes of a tile, or 0.
  template <class Runs>
  std::uint64_t asker(std::uint64_t array, std::uint32_t tile, Runs&& runs) {
    std::vector<std::uint64_t>& asks = arrays_.at(array).tiles[tile].asks;
    while (!asks.empty() && !runs(asks.back())) asks.pop_back();
    return asks.empty() ? 0 : asks.back();
  }
  /// Notes that the tiles which the task writes as a whole are newer there from now on. Sets the numbers of its writes
  /// in `wrote`; returns the number of the last write of all.
  std::uint64_t note_written(const task_record&, std::uint64_t job, std::vector<std::uint64_t>& wrote);
  /// Calls f(access) for each tile that the task writes as a whole, of arrays that the node knows: in the order of
  /// `wrote`.
  template <class F>
  void each_written(const task_record& t, F&& f) const {
    each_written_of(*this, t, [&](const access& x, const copy*) { f(x); });
  }

  // ---- a task ends or comes back ------------------------------------------------------------------------------------
  /// True if a tile that the job is to write would lose what only the node has, if the job did not run.
  bool would_spoil(const job&) const;
  /// Takes the writes of a task back, which has failed or was not run. `touched`: what it was to write is worth
  /// nothing, and what was there before is gone; else the node refused the task because it is leaving, and still has
  /// what was there before. With `spoiled` the task is to run elsewhere: adds the tiles there that only this node had
  /// before it.
  void note_not_written(const job&, const task_record&, bool touched, std::vector<tile_of>* spoiled);
  /// Forgets what is known of the tiles that a task was to read, where others have them, and of parts that it was to
  /// change there and send back: others are not to take them for being there.
  void forget_read(const task_record&);
  /// True if a task sent after the job has written what the job reads or writes: then it must not run there any more.
  /// Adds the tiles to `inputs` that the task needs and that nothing else has.
  bool is_overwritten(const job&, const task_record&, std::vector<overwritten_input>& inputs) const;

  // ---- one tile -----------------------------------------------------------------------------------------------------
  /// True if only the node has what was written last.
  bool is_dirty(std::uint64_t array, std::uint32_t tile) const {
    const copy* const c = find_copy(array, tile);
    return c && c->dirty;
  }
  /// True if the whole tile is there, in the directory's version or a newer one.
  bool has_current(const array_core&, std::uint32_t tile) const;
  /// True if the whole tile is there in just this version.
  bool has_version(std::uint64_t array, std::uint32_t tile, std::uint32_t version) const {
    const copy* const c = find_copy(array, tile);
    return c && c->whole && c->version == version;
  }
  struct version_there {
    std::uint32_t version;
    std::uint64_t last_write;
  };
  /// Returns the version of a tile that only the node has and that may be copied home, or nothing.
  std::optional<version_there> only_version(const array_core&, std::uint32_t tile) const;
  /// Notes that the host has what the node has.
  void came_home(std::uint64_t array, std::uint32_t tile) { arrays_.at(array).tiles[tile].dirty = false; }
  /// Returns the number of the job there in which that task (its sequence) has written the tile, if nothing has been
  /// sent since that changes it; else 0.
  std::uint64_t written_by(std::uint64_t array, std::uint32_t tile, std::uint64_t writer) const {
    const copy* const c = find_copy(array, tile);
    return c && c->whole && c->writer == writer ? c->writer_job : 0;
  }
  /// Notes that the job is told to pull boxes of the tile as another node is about to write it. What is there then is
  /// no version that the directory knows.
  void pulls_ahead(const array_core& a, std::uint32_t tile, const logic::box4& where, std::uint64_t writer,
                   std::uint64_t job) {
    copy& c = at(a).tiles[tile];
    std::vector<logic::box4> before = c.pulled_from == writer ? std::move(c.pulled) : std::vector<logic::box4>();
    c.forget();
    c.pulled = std::move(before);
    c.pulled.push_back(where);
    c.pulled_from = writer;
    c.last_job = job;
  }
  /// Notes that the job touches a tile that is pulled for another one.
  void touches(const array_core& a, std::uint32_t tile, std::uint64_t job) { at(a).tiles[tile].last_job = job; }
  /// True if a job was told to pull that box from that task's node, and nothing has been sent since that changes it.
  bool is_pulled(std::uint64_t array, std::uint32_t tile, const logic::box4& where, std::uint64_t writer) const {
    const copy* const c = find_copy(array, tile);
    return c && c->pulled_from == writer && std::ranges::find(c->pulled, where) != c->pulled.end();
  }
  /// Forgets what is known of a tile, of an array that the node knows.
  void forget(std::uint64_t array, std::uint32_t tile) { arrays_.at(array).tiles[tile].forget(); }
  /// Forgets a tile that the node did not get from a third one, unless it has been written there since. Throws
  /// error(protocol_error) if the array has no such tile.
  void note_unfilled(std::uint64_t array, std::uint32_t tile);
  /// Notes that a tile was in error when it was to be fetched: no task may read it, and it is not asked for again.
  void note_in_error(std::uint64_t array, std::uint32_t tile);
  /// Calls f(array_core*, tile, in_error) for each tile that only the node has.
  template <class F>
  void each_dirty(F&& f) const {
    for (const auto& [id, known] : arrays_)
      for (const auto& [tile, c] : known.tiles)
        if (c.dirty) f(known.core, tile, c.in_error);
  }

 private:
  /// The boxes of one tile that are remembered, at most; and the jobs that asked for some.
  static constexpr std::ptrdiff_t parts_max = 64;
  static constexpr std::size_t asks_max = 16;

  /// The state of one tile there, as far as it is known.
  struct copy {
    std::uint32_t version = 0;          // newer than the directory's until the task that writes it is accounted for
    std::uint64_t last_write = 0;       // the number of the newest write sent there
    std::uint64_t first_write = 0;      // the oldest write whose result may exist on that node only
    std::uint64_t forgotten_write = 0;  // the newest write when this entry was last forgotten
    bool whole = false, dirty = false;
    bool in_error = false;
    std::uint64_t last_job = 0;     // the last one sent that touches it there
    std::uint64_t pulled_from = 0;  // the task, by its sequence, as which leaves them these boxes are pulled; 0: none
    std::vector<logic::box4> pulled;
    std::uint64_t writer = 0, writer_job = 0;  // the task that last wrote it there, by its sequence; 0: none that ran
    logic::box_list parts;
    std::vector<std::uint64_t> asks;  // jobs that were told to ask for boxes of it; some may have ended

    void forget() {
      const std::uint64_t last = last_write, touches = last_job;
      std::vector<std::uint64_t> still = std::move(asks);
      *this = {};
      last_write = forgotten_write = last;
      last_job = touches;
      asks = std::move(still);
    }
  };
  struct known_array {
    array_core* core = nullptr;
    std::shared_ptr<const wire::array_descriptor> shape;
    std::unordered_map<std::uint32_t, copy> tiles;
    int coming_home = 0;
  };

  static std::uint32_t known_version(const array_core& a, std::uint32_t tile) {
    return a.coherence->tiles[tile].version.load(std::memory_order_relaxed);
  }
  static bool is_current(std::uint32_t have, std::uint32_t known) {
    return static_cast<std::int32_t>(have - known) >= 0;
  }
  // Forgets what an older version than the directory's was.
  static void bring_up_to_date(copy& c, const array_core& a, std::uint32_t tile) {
    const std::uint32_t version = known_version(a, tile);
    if (!is_current(c.version, version)) c.forget();
    c.version = is_current(c.version, version) ? c.version : version;
  }
  // Returns an array that the node knows; most often it is the one that know() was asked for last.
  known_array& at(const array_core& a) { return last_ && last_->core == &a ? *last_ : arrays_.at(a.id); }
  const copy* find_copy(std::uint64_t array, std::uint32_t tile) const {
    const auto known = arrays_.find(array);
    if (known == arrays_.end()) return nullptr;
    const auto c = known->second.tiles.find(tile);
    return c == known->second.tiles.end() ? nullptr : &c->second;
  }
  // Calls f(access, copy*) for each tile that the task writes as a whole; without `self`'s constness, the copy is made.
  template <class Self, class F>
  static void each_written_of(Self& self, const task_record& t, F&& f) {
    for (int i = 0; i < t.access_count; ++i) {
      const access& x = t.accesses[i];
      if (!x.array || !logic::is_whole(x) || !logic::writes(x)) continue;
      const auto known = self.arrays_.find(x.array->id);
      if (known == self.arrays_.end()) continue;
      if constexpr (std::is_const_v<Self>)
        f(x, self.find_copy(x.array->id, x.tile));
      else
        f(x, &known->second.tiles[x.tile]);
    }
  }

  std::unordered_map<std::uint64_t, known_array> arrays_;
  known_array* last_ = nullptr;  // the one that know() was asked for last, while it is known
  std::uint64_t writes_ = 0;
};

}  // namespace troupe::detail
