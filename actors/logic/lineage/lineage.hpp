// What this file is for: what ran on other nodes and wrote data that is only there, so that it can be made again.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Pure; owned by placement. A value is the contents of a tile at one version. Home is the host memory of the node that
// spawned the tasks. The log has only those calls of which some write is needed: it is the newest of its tile and home
// does not have it, or another call of the log reads it and it is neither at home nor kept. A value that such a call
// reads and that home is about to overwrite is retained: copied. So the log is as short as the contents of home
// allow: when every value that is nowhere else has been brought home, the log is empty. A value brought home need not
// be the newest: calls before it are not needed then.
//
// The log of each executor (a node) is bounded by the cost of the calls that ran there and might have to be repeated if
// it died. Beyond the bound, the tiles that have been away longest are to be brought home; but not so often that this
// takes more of a link than it is worth: each write says which cost of calls makes up for bringing that tile home.
//
// A call is *broken* if it cannot be repeated: it must run once only, or an input is gone for good. It stays while its
// outputs are needed, but needs nothing itself; its outputs should be saved soon.
//
// Calls are told in the order of the data: the writer of a value before its readers, and a reader before the task that
// overwrites the value. A tile that is not known has at home the value that is read: values that are not at home were
// logged.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include <troupe/detail/id_set.hpp>

namespace troupe::logic {

struct value {
  std::uint64_t array = 0;
  std::uint32_t tile = 0, version = 0;  // versions wrap
  friend bool operator==(const value&, const value&) = default;
};

/// Steps that make lost values again. They write into buffers of their own: home's bytes stay as they are until the
/// end, when the reexecuted values are put in their places.
struct reexecution_plan {
  enum class origin { home, kept, step };
  struct source {
    value what;
    origin where = origin::home;
    std::uint32_t step = 0;  // that makes the value
  };
  struct step {
    std::shared_ptr<const void> what;
    std::vector<source> reads;
    std::vector<value> writes;
    std::vector<value> done_with;  // values written by steps that no later step needs
  };
  enum class reason {
    runs_once,  // the call that wrote the value must not be repeated
    gone        // the value was overwritten before it was kept, or its writer is unknown
  };
  struct hole {
    value lost, lacks;
    reason why = reason::gone;
  };

  std::vector<step> steps;         // in the order in which the calls ran
  std::vector<source> reexecuted;  // lost values that exist in the end, or already
  std::vector<hole> holes;         // lost values that cannot be made again
  double cost_ns = 0;
};

struct lineage_bounds {
  std::size_t calls = 100'000;
  double cost_ns = 1e9;  // of the calls of one executor
  std::uint64_t kept_bytes = 256u << 20;
};

class lineage {
 public:
  using bounds = lineage_bounds;
  struct write {
    value what;
    std::uint64_t bytes = 0;
    float fetch_worth_ns = 0;  // cost of calls that makes up for bringing it home
    bool at_once = false;      // bring it home soon, whatever it costs
  };
  struct call {
    std::vector<value> reads;   // the tiles' values at the time of telling, without those that the call updated
    std::vector<write> writes;  // whole tiles that are on the node only
    std::shared_ptr<const void> what;
    float cost_ns = 0;
    bool repeatable = true;
    bool may_be_lost = false;    // not repeatable, and what it wrote is not brought home for that alone
    std::uint16_t executor = 0;  // the executor where it ran
    // Values of `reads` that were copied as the call was told, since home is being overwritten beside them; with bytes.
    std::vector<std::pair<value, std::uint64_t>> kept{};
  };
  using tile_of = std::pair<std::uint64_t, std::uint32_t>;  // array, tile

  explicit lineage(bounds b = {}) : bounds_(b) {}
  lineage(const lineage&) = delete;
  lineage& operator=(const lineage&) = delete;

  // ---- events -------------------------------------------------------------------------------------------------------
  /// Logs a task that ran on another node. Takes what the shared pointer holds; the lists stay the caller's.
  void ran(call&&);
  /// Notes that the host's bytes of the tile are about to be overwritten, in part or as a whole, or freed: home has no
  /// version of the tile from now on. Call `must_keep` before. Ends with `came_home` or `stays_away`; several may
  /// overlap.
  void leaves_home(std::uint64_t array, std::uint32_t tile);
  /// Notes that the host's bytes of the tile are of this version: they were brought or written here.
  void came_home(std::uint64_t array, std::uint32_t tile, std::uint32_t version);
  /// Notes that the task that was to overwrite the host's bytes failed.
  void stays_away(std::uint64_t array, std::uint32_t tile);
  /// Notes that a device of this machine wrote the tile: neither a node nor the host has the new version.
  void overwritten(std::uint64_t array, std::uint32_t tile, std::uint32_t version);
  /// Notes that the tile's contents are lost and no task waits for them.
  void give_up(std::uint64_t array, std::uint32_t tile);
  /// Forgets the array: no task will name it again, and its host's bytes are about to be freed.
  void forget(std::uint64_t array);

  // ---- retained copies ----------------------------------------------------------------------------------------------
  /// Returns the value(s) in the host's bytes of this tile, or array, that must be retained (copied) before they are
  /// overwritten or freed.
  std::optional<value> must_keep(std::uint64_t array, std::uint32_t tile) const;
  std::vector<value> must_keep(std::uint64_t array) const;
  /// Notes that the value has been retained. Returns false if the copy is not needed.
  bool kept(const value&, std::uint64_t bytes);
  /// True if the host's bytes of the tile are not of that version, as far as is known: a task that overwrites some of
  /// them is under way, or has failed.
  bool is_away(const value& v) const {
    const known_tile* const t = find(v.array, v.tile);
    return t && (t->overwriting != 0 || t->home != v.version);
  }
  /// Returns the copies that are not needed any more, and forgets them.
  std::vector<value> take_unwanted();

  // ---- keeping the log short ----------------------------------------------------------------------------------------
  /// Returns the tiles that should be brought home now: at once those that a broken call wrote and those written with
  /// `at_once`; and, while a bound is exceeded, those that have been away longest. Of the latter, the tiles of one
  /// executor that are asked for and not home yet never exceed `bytes` together, or are one tile. A tile is returned
  /// once, until it has come home.
  std::vector<tile_of> to_save(std::uint64_t bytes);
  /// True if the log would be shorter if the tile were of this version at home.
  bool is_wanted(const value&) const;
  /// Notes that the tile could not be brought home; to_save() may return it again: at once, or when it has been written
  /// again.
  void not_saved(std::uint64_t array, std::uint32_t tile, bool at_once = true);

  // ---- after a loss -------------------------------------------------------------------------------------------------
  reexecution_plan reexecute(std::span<const value> lost) const;

  bool empty() const { return arrays_.empty(); }
  std::size_t calls() const { return call_count_; }
  double cost_ns() const { return static_cast<double>(cost_ns_); }
  std::uint64_t kept_bytes() const { return kept_bytes_; }
  double cost_ns(std::uint16_t executor) const {
    return executor < sites_.size() ? static_cast<double>(sites_[executor].cost_ns) : 0;
  }

 private:
  struct known_array;
  struct known_tile;
  struct known_value;
  struct logged;
  class planner;

  struct read_link {
    known_value* what;
    std::uint32_t index;  // index in the value's readers
  };
  struct reader {
    logged* call;
    std::uint32_t read;  // index in the call's reads
  };
  struct logged {
    std::uint64_t number = 0;  // in the order of telling; 0: free
    std::vector<read_link> reads;
    std::vector<known_value*> writes;
    std::shared_ptr<const void> what;
    std::uint64_t cost_ns = 0;
    std::uint16_t executor = 0;
    std::uint32_t needed = 0;  // number of writes that are needed
    bool broken = false, may_be_lost = false;
    reexecution_plan::reason why = reexecution_plan::reason::gone;
    value lacks;
  };
  struct known_value {
    known_tile* tile = nullptr;
    std::uint32_t version = 0;
    known_value* newer = nullptr;
    known_value* older = nullptr;
    logged* maker = nullptr;
    std::vector<reader> readers;  // calls of the log that are not broken
    std::uint64_t kept_bytes = 0, seen = 0;
    bool needed = false, kept = false, unwanted = false, to_check = false;
  };
  struct known_tile {
    known_array* of = nullptr;
    std::uint32_t number = 0;
    known_value* values = nullptr;  // newest first
    std::optional<std::uint32_t> newest, home;
    std::uint32_t overwriting = 0;
    std::uint64_t bytes = 0, asked_bytes = 0;  // of the last write; of the last request to save it
    std::uint64_t fetch_worth_ns = 0, away_ns = 0;
    bool at_once = false, rests = false;
    bool given_up = false, asked = false, away = false, listed = false;
    std::uint16_t away_in = 0, asked_in = 0;
    known_tile* before = nullptr;  // neighbours among those away on one executor and not asked for, oldest first
    known_tile* after = nullptr;
  };
  struct site {
    std::uint64_t cost_ns = 0, away_ns = 0, asked_bytes = 0;
    known_tile* first = nullptr;
    known_tile* last = nullptr;
  };
  struct known_array {
    std::uint64_t id = 0;
    bool forgotten = false;
    std::unordered_map<std::uint32_t, known_tile> tiles;
  };

  static value name_of(const known_value& v) { return {v.tile->of->id, v.tile->number, v.version}; }
  static bool is_at_home(const known_value& v) {
    return v.tile->overwriting == 0 && v.tile->home && *v.tile->home == v.version;
  }
  static bool is_here(const known_value& v) { return v.kept || is_at_home(v); }
  /// True if the value is the newest of its tile and may still come home.
  static bool is_current(const known_value& v) {
    return v.tile->newest == v.version && !v.tile->of->forgotten && !v.tile->given_up;
  }

  known_tile* find(std::uint64_t array, std::uint32_t tile) const;
  known_value* find(const value&) const;
  static known_value* find(const known_tile&, std::uint32_t version);
  known_tile& know(std::uint64_t array, std::uint32_t tile);
  known_value& know(known_tile&, std::uint32_t version);
  static void note_newest(known_tile&, std::uint32_t version);

  void check(known_value*);
  void check_version(known_tile&, const std::optional<std::uint32_t>& version);
  void judge_all();
  void judge(known_value&);
  void drop(logged&);
  void break_off(logged&, const value& lacks);
  void stop_reading(logged&);
  void erase(known_value&);
  void tidy(known_tile&);

  void note_away(known_tile&);
  void link_last(known_tile&);
  void unlink(known_tile&);
  void not_asked(known_tile&);
  void hurry(known_tile&);
  static bool is_urgent(const known_tile&);
  bool is_dear(const site&) const;
  site& changed_site(std::uint16_t executor) {
    changed_.insert(executor);
    if (executor >= sites_.size()) sites_.resize(executor + 1u);
    return sites_[executor];
  }

  const bounds bounds_;
  std::unordered_map<std::uint64_t, known_array> arrays_;
  std::deque<logged> logged_;  // in use and free
  std::deque<known_value> values_;
  std::vector<logged*> free_calls_;
  std::vector<known_value*> free_values_;
  std::uint64_t last_number_ = 0, cost_ns_ = 0, kept_bytes_ = 0;
  std::size_t call_count_ = 0;
  std::vector<site> sites_;  // up to the last executor that has been named
  detail::id_set changed_;   // sites that changed since the last `to_save`
  std::vector<tile_of> hurried_;
  std::vector<value> unwanted_;
  std::vector<known_value*> to_check_;  // empty between changes, like the next
  std::vector<logged*> to_drop_;
};

}  // namespace troupe::logic
