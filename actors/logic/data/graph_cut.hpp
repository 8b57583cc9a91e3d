// What this file is for: cuts a recorded program into parts, one for each process, and finds what travels between them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Pure. Calls come in program order, each with its part. A tile that some call writes has a home: the part of the first of
// these calls. There its contents are when a run begins and when it ends. A tile that no call writes has none: each part
// that reads it has it from outside.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include <troupe/detail/id_set.hpp>

#include "actors/logic/data/box4.hpp"

namespace troupe::logic {

/// One part of a cut reads or writes a box of one tile.
struct cut_piece {
  std::uint32_t array = 0, tile = 0;
  box4 where;
  bool reads = false, writes = false;
};

struct cut_call {
  std::uint32_t part = 0;
  std::vector<cut_piece> pieces{};
  std::vector<std::uint32_t> after{};  ///< earlier calls, by number, that it waits for whatever they write
};

/// A box that travels from one part to another, or only the word that a call has ended.
struct crossing {
  static constexpr std::uint32_t no_array = ~std::uint32_t{0};
  std::uint32_t from = 0, to = 0;
  std::uint32_t array = no_array, tile = 0;
  box4 where{};
  std::uint32_t call = 0;  ///< that has ended, where there is no array
  bool carries_bytes() const { return array != no_array; }
};

class graph_cut {
 public:
  /// A call, by number, or a crossing: the sender sends it, and the receiver takes it, at this place in program order.
  struct step {
    bool is_crossing = false;
    std::uint32_t number = 0;
  };

  explicit graph_cut(const std::vector<cut_call>&);

  /// Returns all steps in program order.
  const std::vector<step>& steps() const { return steps_; }
  const std::vector<crossing>& crossings() const { return crossings_; }
  /// Returns the part that has the tile when a run begins and ends; nothing if no call writes it.
  std::optional<std::uint32_t> home_of(std::uint32_t array, std::uint32_t tile) const;

 private:
  /// A box of a tile that is current elsewhere than at home alone.
  struct fragment {
    box4 where;
    detail::id_set parts;  // that have it
    std::uint32_t writer;  // one of these
  };
  struct tile_parts {
    std::uint32_t home = 0;
    std::vector<fragment> elsewhere;
  };
  static std::uint64_t key(std::uint32_t array, std::uint32_t tile) { return std::uint64_t{array} << 32 | tile; }

  void find_homes(const std::vector<cut_call>&);
  void bring(std::uint32_t part, const cut_piece&);
  void note_written(std::uint32_t part, const cut_piece&);
  void bring_end_of(const std::vector<cut_call>&, std::uint32_t call, std::uint32_t part);
  void bring_all_home();
  void cross(const crossing&);

  std::unordered_map<std::uint64_t, tile_parts> tiles_;
  std::vector<std::uint64_t> order_;  // of tiles, as they were first written
  std::vector<detail::id_set> told_;  // for each call, the parts that were told of its end
  std::vector<crossing> crossings_;
  std::vector<step> steps_;
};

}  // namespace troupe::logic
