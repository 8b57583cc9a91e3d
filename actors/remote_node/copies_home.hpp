// What this file is for: copies of tiles on their way home from a node that goes on with the tiles.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/memory/host_tiles.hpp"

namespace troupe::detail {

/// Keeps the copies that were asked for, and those that have come and that placement has not been told of. A copy is
/// asked for on behalf of a job, which ends when the copy is here, or because placement wants the tile saved: then the
/// actor holds a handle of the array until placement has been told.
///
/// A part of a node's actor, under the actor's lock. A copy's version is the one that the last write before the request
/// makes, if that write goes well.
class copies_home {
 public:
  using tile_of = std::pair<array_core*, std::uint32_t>;
  /// A copy that was asked for.
  struct copy {
    saved_tile what;
    std::uint64_t write = 0;    // the number of the last write that it has seen
    std::uint64_t for_job = 0;  // the job that ends when it is here; 0: a handle of the array is held
    bool spoiled = false;       // that write has failed
    bool writing = false;       // its bytes are coming
  };

  /// Adds a copy that is asked for under that number.
  void ask(std::uint64_t number, array_core& a, std::uint32_t tile, std::uint32_t version, std::uint64_t write,
           std::uint64_t for_job) {
    copy& c = asked_[number];
    c.what.array = &a;
    c.what.tile = tile;
    c.what.version = version;
    c.write = write;
    c.for_job = for_job;
  }
  /// Returns the copy under that number, or null.
  copy* find(std::uint64_t number) {
    const auto c = asked_.find(number);
    return c == asked_.end() ? nullptr : &c->second;
  }
  struct arrival {
    array_core* array;      // of which one tile less is on its way
    std::uint64_t for_job;  // 0: none
    saved_tile tile;        // for the job; without an array if the copy is worth nothing
  };
  /// Takes out a copy that has come, or (not `whole`) that the node could not send. Copies without a job are kept for
  /// take_accounted().
  arrival arrived(std::uint64_t number, bool whole) {
    auto node = asked_.extract(number);
    copy& c = node.mapped();
    const bool good = whole && !c.spoiled;
    arrival a{c.what.array, c.for_job, {}};
    if (c.for_job != 0) {
      if (good) a.tile = std::move(c.what);
    } else if (good) {
      came_.push_back(std::move(c));
    } else {
      not_saved_.emplace_back(c.what.array, c.what.tile);
    }
    return a;
  }
  /// Makes copies of a tile worthless that have seen that write, or one after it: the write has failed, so versions
  /// from it on are others than was thought.
  void spoil(const array_core& a, std::uint32_t tile, std::uint64_t write) {
    const auto is_of = [&](const copy& c) { return c.what.array == &a && c.what.tile == tile && c.write >= write; };
    for (auto& [number, c] : asked_) c.spoiled = c.spoiled || is_of(c);
    std::erase_if(came_, [&](const copy& c) {
      if (is_of(c)) not_saved_.emplace_back(c.what.array, c.what.tile);
      return is_of(c);
    });
  }
  /// True if placement is to be told of something.
  bool has_news() const { return !came_.empty() || !not_saved_.empty(); }
  struct news {
    std::vector<saved_tile> saved;
    std::vector<tile_of> not_saved;
  };
  /// Takes what placement is to be told of: the copies for which is_accounted(const saved_tile&) is true, and the tiles
  /// of which none came. Others stay until the tasks that wrote them are accounted for.
  template <class F>
  news take_accounted(F&& is_accounted) {
    news n;
    n.not_saved.swap(not_saved_);
    std::erase_if(came_, [&](copy& c) {
      if (!is_accounted(std::as_const(c.what))) return false;
      n.saved.push_back(std::move(c.what));
      return true;
    });
    return n;
  }
  /// Drops everything: the session has ended, and nothing writes to the copies' memory any more. Returns the tiles of
  /// which a handle is held.
  std::vector<tile_of> drop() {
    std::vector<tile_of> all = std::exchange(not_saved_, {});
    for (const auto& [number, c] : asked_)
      if (c.for_job == 0) all.emplace_back(c.what.array, c.what.tile);
    for (const copy& c : came_) all.emplace_back(c.what.array, c.what.tile);
    asked_.clear();
    came_.clear();
    return all;
  }

 private:
  std::unordered_map<std::uint64_t, copy> asked_;  // by number
  std::vector<copy> came_;
  std::vector<tile_of> not_saved_;
};

}  // namespace troupe::detail
