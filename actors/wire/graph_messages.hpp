// What this file is for: what nodes say to each other about recorded graphs that span several of them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// The owner of a graph, which has recorded it, defines each part on the node that has it, in frames of about 48 KiB. A
// run is a task like any other (kernel graph_part_kernel). While it runs, parts send each other what crosses.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "actors/wire/task_messages.hpp"

namespace troupe::detail::wire {

inline constexpr std::size_t graph_members_max = 1024, graph_steps_max = 1u << 22;
/// Bytes of a box that crosses inside a frame; larger ones take the bulk connection.
inline constexpr std::size_t crossing_inline_max = 32u << 10;

/// A step of a part, in program order.
struct graph_step {
  /// A call; a crossing's ends; a box that is filled with one element; a box that is added to the same one of another
  /// array, by an operator of reductions.
  enum class what : std::uint8_t { call, send, take, fill, merge };
  static constexpr std::uint32_t no_array = 0xffffffff;
  struct link {
    std::uint32_t step = 0;
    bool data = false;
  };
  what kind = what::call;
  task_descriptor call{};                    ///< its arrays are numbers in graph_definition::arrays
  std::uint32_t crossing = 0, other = 0;     ///< of send and take: its number, and the part at the other end
  std::uint32_t array = no_array, tile = 0;  ///< of all but calls; no array: nothing but the word crosses
  logic::box4 where{};
  std::array<std::byte, fill_bytes_max> element{};  ///< of fill
  std::uint32_t into = 0;                           ///< of merge: the array that is changed
  std::uint16_t op = 0;                             ///< of merge: as detail::operator_code has it
  std::vector<link> after{};                        ///< earlier steps that it waits for, beside those of its data
};

struct graph_tile {
  std::uint32_t array = 0, tile = 0;
  std::optional<logic::box4> box{};  ///< the task reads nothing else of the tile
};

struct graph_definition {
  std::uint64_t graph = 0;  ///< the owner's number, never used again
  std::uint32_t part = 0;
  std::vector<node_id> members{};
  std::vector<array_descriptor> arrays{};
  std::vector<graph_tile> bound{};  ///< tiles that the task of a run holds, in the order of its accesses
  std::vector<graph_step> steps{};
};

/// Returns the frames that define a part.
std::vector<net::writer> frames_of(const graph_definition&);
/// Adds what a frame of them says, after its kind; true if it was the last. The number of the graph is in every frame.
bool take_definition(net::reader&, graph_definition&);
/// Returns the graph's number, which comes first.
std::uint64_t graph_of(net::reader);

/// The answer to a definition.
struct graph_answer {
  std::uint64_t graph = 0;
  bool is_ready = true;
  std::uint64_t edges = 0;          ///< dependencies inside the part
  errc code = errc::not_supported;  ///< why it is not
  std::string text{};
};
void put(net::writer&, const graph_answer&);
graph_answer take_graph_answer(net::reader&);

/// What crosses from part to part in a run, as a frame with the bytes behind it or as the head of a transfer.
struct crossing_head {
  node_id owner{};
  std::uint64_t graph = 0, run = 0;
  std::uint32_t crossing = 0;
};
void put(net::writer&, const crossing_head&);
crossing_head take_crossing(net::reader&);

/// A crossing, or all that a part would send in a run, does not come.
struct graph_failure {
  node_id owner{};
  std::uint64_t graph = 0, run = 0;
  bool whole_part = false;  ///< `number` is a part; else a crossing
  std::uint32_t number = 0;
  errc code = errc::task_failed;
  std::string task{}, executor{}, text{};
  std::uint32_t attempts = 1;  ///< of the task's body
};
void put(net::writer&, const graph_failure&);
graph_failure take_graph_failure(net::reader&);
/// Between an error and what is said of it.
void describe(graph_failure&, const std::exception_ptr&);
std::exception_ptr error_of(const graph_failure&);

}  // namespace troupe::detail::wire
