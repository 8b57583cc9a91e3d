// What this file is for: what ran on other nodes and wrote data that is only there, so that it can be made again.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Pure; owned by placement. A value is what a tile held at one version. Home is the host's memory of the node that
// spawned the tasks. The log has those calls only of which some write is needed: it is the newest of its tile and home
// does not have it, or another call of the log reads it and it is neither at home nor kept. A value that such a call
// reads and that home is about to overwrite is kept: copied aside. So the log is as short as what is at home allows:
// bring home what is nowhere else, and it is empty. It need not be the newest: what came before it is not needed then.
//
// What each place (a node) has to itself is bounded by the cost of the calls that ran there and might have to be repeated
// if it died. Beyond, what has been there longest is to be brought home; but not so often that this takes more of a link
// than it is worth: who tells of a write says which cost of calls makes up for bringing that tile home.
//
// A call is *broken* if it cannot be repeated: it must run once only, or what it read is gone for good. It stays while
// what it wrote is needed, but needs nothing itself; what it wrote should be saved soon.
//
// What is told here is told in the order of the data: who wrote a value before who read it, and the reader before who
// overwrites it. Of a tile that nothing is known of, home has what is read: what is not at home was logged.
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

/// What to do so that lost values exist again. Steps write into buffers of their own: home's bytes are as they were until
/// the end, when what was lost is put in its place.
struct remake_plan {
  enum class place { home, kept, step };
  struct source {
    value what;
    place where = place::home;
    std::uint32_t step = 0;  // that makes it
  };
  struct step {
    std::shared_ptr<const void> what;
    std::vector<source> reads;
    std::vector<value> writes;
    std::vector<value> done_with;  // of what steps have written: nobody needs it after this step
  };
  enum class reason {
    runs_once,  // the call that wrote it must not be repeated
    gone        // it was overwritten before anybody kept it, or nobody knows who wrote it
  };
  struct hole {
    value lost, lacks;
    reason why = reason::gone;
  };

  std::vector<step> steps;     // in the order in which they ran
  std::vector<source> remade;  // of what was lost: there are these, in the end or already
  std::vector<hole> holes;     // and not these
  double cost_ns = 0;
};

struct lineage_bounds {
  std::size_t calls = 100'000;
  double cost_ns = 1e9;  // of the calls of one place
  std::uint64_t kept_bytes = 256u << 20;
};

class lineage {
 public:
  using bounds = lineage_bounds;
  struct write {
    value what;
    std::uint64_t bytes = 0;
    float worth_ns = 0;    // bringing it home is worth so much
    bool at_once = false;  // it is to be at home soon, whatever it costs
  };
  struct call {
    std::vector<value> reads;   // what the tiles hold at the time of telling, what it updated itself aside
    std::vector<write> writes;  // whole tiles that are on the node only
    std::shared_ptr<const void> what;
    float cost_ns = 0;
    bool repeatable = true;
    std::uint16_t place = 0;  // where it ran: the number of an executor
  };
  using tile_of = std::pair<std::uint64_t, std::uint32_t>;  // array, tile

  explicit lineage(bounds b = {}) : bounds_(b) {}
  lineage(const lineage&) = delete;
  lineage& operator=(const lineage&) = delete;

  // ---- what happens -------------------------------------------------------------------------------------------------
  /// A task ran on another node. Takes what it points to; the lists stay the caller's.
  void ran(call&&);
  /// The host's bytes of the tile are about to be overwritten, in part or as a whole, or freed: from now on home has no
  /// version of it. Ask `must_keep` before. Ends with `came_home` or `stays_away`; several may overlap.
  void leaves_home(std::uint64_t array, std::uint32_t tile);
  /// The host's bytes of the tile are of this version: they were brought here, or written here.
  void came_home(std::uint64_t array, std::uint32_t tile, std::uint32_t version);
  /// What was to overwrite the host's bytes failed.
  void stays_away(std::uint64_t array, std::uint32_t tile);
  /// Somebody else than a node has written it, and not the host's bytes: a device of this machine.
  void overwritten(std::uint64_t array, std::uint32_t tile, std::uint32_t version);
  /// What the tile holds is lost, and nobody waits for it.
  void give_up(std::uint64_t array, std::uint32_t tile);
  /// No task will name the array again; its host's bytes are about to be freed.
  void forget(std::uint64_t array);

  // ---- copies aside -------------------------------------------------------------------------------------------------
  /// What of the host's bytes of this tile, or array, must be copied aside before they are overwritten or freed.
  std::optional<value> must_keep(std::uint64_t array, std::uint32_t tile) const;
  std::vector<value> must_keep(std::uint64_t array) const;
  /// It was copied aside. False: nobody needs it.
  bool kept(const value&, std::uint64_t bytes);
  /// Copies that nobody needs any more.
  std::vector<value> take_unwanted();

  // ---- keeping it short ---------------------------------------------------------------------------------------------
  /// What should be brought home now: at once what a broken call wrote, and what is to be; and, while a bound is exceeded,
  /// what is away longest. Of the latter at most so many bytes of each place are asked for and not home at any time, or one
  /// tile. Named once, until it has come home.
  std::vector<tile_of> to_save(std::uint64_t bytes);
  /// The log would be shorter if the tile were of this version at home.
  bool is_wanted(const value&) const;
  /// It could not be brought home, and may be named again: at once, or when it has been written again.
  void not_saved(std::uint64_t array, std::uint32_t tile, bool at_once = true);

  // ---- after a loss -------------------------------------------------------------------------------------------------
  remake_plan remake(std::span<const value> lost) const;

  bool empty() const { return arrays_.empty(); }
  std::size_t calls() const { return call_count_; }
  double cost_ns() const { return static_cast<double>(cost_ns_); }
  std::uint64_t kept_bytes() const { return kept_bytes_; }
  double cost_ns(std::uint16_t place) const {
    return place < sites_.size() ? static_cast<double>(sites_[place].cost_ns) : 0;
  }

 private:
  struct known_array;
  struct known_tile;
  struct known_value;
  struct logged;

  struct read_link {
    known_value* what;
    std::uint32_t place;  // in its readers
  };
  struct reader {
    logged* call;
    std::uint32_t read;  // the number of its link
  };
  struct logged {
    std::uint64_t number = 0;  // in the order of telling; 0: free
    std::vector<read_link> reads;
    std::vector<known_value*> writes;
    std::shared_ptr<const void> what;
    std::uint64_t cost_ns = 0;
    std::uint16_t place = 0;
    std::uint32_t needed = 0;  // writes that are
    bool broken = false;
    remake_plan::reason why = remake_plan::reason::gone;
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
    std::uint64_t bytes = 0, asked_bytes = 0;  // as of the last write, as the next
    std::uint64_t worth_ns = 0, away_ns = 0;
    bool at_once = false, rests = false;
    bool given_up = false, asked = false, away = false, listed = false;
    std::uint16_t away_in = 0, asked_in = 0;
    known_tile* before = nullptr;  // of those that are away in one place and have not been asked for, oldest first
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
  /// If it is not here, it may still come.
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
  void settle();
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
  site& changed_site(std::uint16_t place) {
    changed_.insert(place);
    if (place >= sites_.size()) sites_.resize(place + 1u);
    return sites_[place];
  }

  const bounds bounds_;
  std::unordered_map<std::uint64_t, known_array> arrays_;
  std::deque<logged> logged_;  // with those that are free
  std::deque<known_value> values_;
  std::vector<logged*> free_calls_;
  std::vector<known_value*> free_values_;
  std::uint64_t last_number_ = 0, cost_ns_ = 0, kept_bytes_ = 0;
  std::size_t call_count_ = 0;
  std::vector<site> sites_;  // up to the last place of which something has been told
  detail::id_set changed_;   // those of which `to_save` has not seen the latest
  std::vector<tile_of> hurried_;
  std::vector<value> unwanted_;
  std::vector<known_value*> to_check_;  // within one change, as the next
  std::vector<logged*> to_drop_;
};

}  // namespace troupe::logic
