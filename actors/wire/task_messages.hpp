// What this file is for: what nodes say to each other about tasks and data, and how it is put into frames.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// The owner of a task is the node where it was spawned, the node service the node that runs it. docs/protocol.md says
// for each message which node sends it, what answers it, and whether it may be lost or come twice. Decoding checks
// every number against what is left of the frame and against the limits below, and throws `error(protocol_error)`.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <troupe/access.hpp>
#include <troupe/box.hpp>
#include <troupe/error.hpp>
#include <troupe/options.hpp>

#include "actors/logic/data/box4.hpp"
#include "actors/protocol/node.hpp"
#include "net/codec.hpp"

namespace troupe::detail::wire {

/// The first byte of every frame, and of the head of every transfer; below 0x10 they are membership's.
enum class kind : std::uint8_t {
  node_descriptor = 0x10,  ///< both ways, once: what the sender can run
  tasks = 0x11,            ///< owner to node service: tasks to run
  done = 0x12,             ///< node service to owner: tasks that have ended
  cancel = 0x13,           ///< owner to node service: somebody asked a task to stop
  fetch_in = 0x14,         ///< node service to owner: send these bytes; answered by `bytes_in`
  fetch_home = 0x15,       ///< owner to node service: send a tile home; answered by `bytes_home`, or `not_sent`
  not_sent = 0x16,         ///< node service to owner: `bytes_home` or `bytes_back` that will not come, and why
  forget = 0x17,           ///< owner to node service: arrays that will not be named again
  leaving = 0x18,       ///< node service to owner: send no more tasks, fetch what is only here; answered by `released`
  released = 0x19,      ///< owner to node service: nothing of mine is left that I could not do without
  lend = 0x1a,          ///< owner to node service: keep these bytes for another node service, which pulls them once
  lend_written = 0x31,  ///< owner to node service: as `lend`, as a task there leaves them; nothing if that does not run
  unlend = 0x1b,        ///< owner to node service: nobody will pull these any more
  pull =
      0x1c,  ///< node service to node service: send what you were to keep; answered by `bytes_pulled`, or `cannot_pull`
  cannot_pull = 0x1d,  ///< the answer to `pull` where there is nothing to send
  no_pull = 0x1e,      ///< owner to node service: what you were to pull is not there
  unfilled = 0x1f,     ///< node service to owner: what was to be pulled has not come
  snapshot = 0x2a,     ///< owner to node service: as `fetch_home`, but what comes after it there need not wait for it
  gaps = 0x2b,         ///< owner to node service: gaps of the task that comes next, where it has many
  recall = 0x30,       ///< owner to node service: tasks that may run elsewhere, unless they have begun
  begun = 0x24,        ///< node service to owner: tasks under suspicion whose bodies are about to run
  tried = 0x2d,        ///< node service to owner: tasks whose bodies have thrown, each once, and are tried again
  // of recorded graphs that span nodes; see graph_messages.hpp
  graph_define = 0x36,  ///< owner to node: a part of a graph
  graph_drop = 0x37,    ///< owner to node: a graph that will not be run again
  crossing = 0x38,      ///< node to node: what a part of a run sends to another one; also the head of a transfer
  graph_failed = 0x39,  ///< node to node: what a part of a run was to send does not come
  graph_ready = 0x3a,   ///< node to owner: the answer to the last `graph_define` of a part: it is there, or why not
  // of members, whatever they do for each other; see node_messages.hpp
  load = 0x25,       ///< what the sender has to do
  ping = 0x26,       ///< say this number again; answered by `pong`
  pong = 0x27,       ///< the answer to `ping`
  describe = 0x28,   ///< say what you are and what you know of your links; answered by `described`
  described = 0x29,  ///< the answer to `describe`
  // heads of transfers
  bytes_in = 0x20,      ///< the answer to `fetch_in`
  bytes_home = 0x21,    ///< a tile
  bytes_back = 0x22,    ///< what a task has written into memory of its owner's
  bytes_pulled = 0x23,  ///< from node service to node service
  bytes_pushed = 0x2c,  ///< what a task reads, sent with it before anybody has asked
  check = 0x2e,         ///< of members: anything, to see how long it takes; answered by `checked`
  checked = 0x2f,       ///< as much of anything, back
};

/// So many tasks are recalled at once.
inline constexpr std::size_t recalled_max = 256;

inline constexpr std::size_t name_max = 256, text_max = 4096, kernels_max = 65536;
/// Tiles of an array that is named to another node.
inline constexpr std::uint32_t tiles_max = 1u << 22;
/// Largest quantity: beyond any that is counted, and sums of them stay exact.
inline constexpr double amount_max = 1e12;
/// Longest run time that a message may give: thirty years.
inline constexpr float time_max_ns = 1e18f;
inline constexpr std::size_t accesses_max = 65535, resources_max = 256, gaps_max = 1u << 20, values_max = 256,
                             value_max = 4096;
/// Bytes that an owner sends unasked and that are under way at once, and that a receiver keeps without a place for
/// them.
inline constexpr std::uint64_t pushed_bytes_max = 8u << 20;
/// Bytes of a box that travels inside a message about its task, and of all those of one task: what is larger takes the
/// bulk connection, where it holds nothing up.
inline constexpr std::size_t inline_max = 4096, inline_task_max = 16u << 10;
/// An array, and what a task sees of one, of which more could not be addressed.
inline constexpr double bytes_max = 1e15;
/// Bytes of the largest frame that a peer has to take. No frame is larger: long lists are sent in several frames of
/// about 48 KiB; a task without its gaps stays below 13 MiB, by the limits above; all else is far smaller.
inline constexpr std::size_t frame_max_least = (16u << 20) - 64;

kind kind_of(std::span<const std::byte> frame);

struct node_descriptor {
  std::uint32_t threads = 0;          ///< that run bodies
  std::uint64_t memory_bytes = 0;     ///< of the machine that the process may use
  bool lends = true;                  ///< other nodes may pull from it; not where tiles may have to leave its memory
  std::vector<resource> resources{};  ///< quantities of its own that tasks may hold there
  std::vector<std::uint64_t> kernels;
};

/// An array as its owner made it; named once before its first use.
struct array_descriptor {
  std::uint64_t id = 0;
  int rank = 1;
  std::array<index_t, rank_max> size{1, 1, 1, 1}, tile{1, 1, 1, 1};
  std::uint64_t element = 1, align = 1;
  std::string name;
};

/// Bytes that a task reads and its node does not have: a box inside one tile of the access's array.
struct gap {
  std::uint32_t tile = 0;
  logic::box4 where;
  /// The node that has the bytes (none: the owner), from which they are pulled under the number with which they are
  /// lent.
  node_id from{};
  std::uint64_t lent = 0;
  /// The owner sends them at once, under that number; 0: when it is asked.
  std::uint64_t pushed = 0;
  /// The bytes themselves, rows packed, if they are few (inline_max); else empty.
  std::vector<std::byte> bytes{};
};

struct access_descriptor {
  std::uint64_t array = 0;
  access_mode mode = access_mode::read;
  /// True if the bytes are sent back once the task has run: the owner keeps the array, or this part of it.
  bool returns = false;
  /// A partial of a reduction: an array of its own that holds `fill` at first.
  bool fresh = false;
  /// Of a partial: the owner's number of the reduction, whose partials may be added up before they are sent; 0: each is
  /// sent by itself.
  std::uint64_t group = 0;
  std::uint16_t op = 0;  ///< where there is a group: by which operator, as detail::operator_code has it
  /// A tile that the task writes, and that is read elsewhere: a copy of it is to come with the task's end.
  bool copied = false;
  logic::box4 where, limit;
  border edge = border::clip;
  std::array<std::byte, fill_bytes_max> fill{};
  std::vector<gap> gaps;
};

struct task_descriptor {
  std::uint64_t id = 0;  ///< the owner's, never used again
  std::uint64_t kernel = 0;
  std::string name;
  std::int32_t priority = 0;
  std::uint32_t retries = 0;
  bool watched = false;               ///< a node went while it had this task: when its body begins is to be told
  std::vector<resource> resources{};  ///< that the call asks for, beside those of its kernel
  std::vector<access_descriptor> accesses;
  std::vector<std::vector<std::byte>> values;
};

/// As a new one, but for the memory.
void clear(task_descriptor&);

struct tasks {
  std::vector<array_descriptor> arrays;
  std::vector<task_descriptor> all;
};

/// Gaps of one array.
struct gaps {
  std::uint64_t array = 0;
  std::vector<gap> all;
};

/// Partials in one sum, beside that in whose name it is sent, at most.
inline constexpr std::uint64_t sum_max = 255;

/// How a task ended.
enum class outcome : std::uint8_t {
  ran,      ///< well
  failed,   ///< its body threw, or its node could not run it
  not_run,  ///< what it depends on failed there, or its node is leaving
  no_room,  ///< its node has no room for what it touches, or no device that can run it: others may
  unfilled  ///< not begun: bytes from a third node did not come, the owner took it back, or the node gives its tasks up
};

/// A copy of what a task has written for one of its accesses, by its number in the descriptor; rows packed. Those of
/// one task come in the order of these numbers.
struct written_box {
  std::uint32_t access = 0;
  std::vector<std::byte> bytes;
};

struct task_end {
  std::uint64_t id = 0;
  outcome how = outcome::ran;
  float measured_ns = 0;
  std::int32_t attempts = 1;  ///< bodies of it that have run there; all have thrown, but the last where it `ran`
  errc code = errc::task_failed;
  std::string text{};
  std::string root{};  ///< of a run of a part of a graph that failed: which call it was
  std::vector<written_box>
      written{};        ///< of a task that ran: boxes that return or were to be copied, if they are small
  bool in_sum = false;  ///< of a task that ran: its partial is still to come, perhaps in a sum with others
};

struct box_request {
  std::uint64_t number = 0;  ///< the asker's
  std::uint64_t array = 0;
  gap what;
};

void put(net::writer&, const node_descriptor&);
void put(net::writer&, const tasks&);
/// The parts of a `tasks` frame, for a caller that writes it as it goes along.
void put(net::writer&, const array_descriptor&);
void put(net::writer&, const task_descriptor&);
void put(net::writer&, const gap&);
void put(net::writer&, const task_end&);
void put(net::writer&, const box_request&);

/// A node service asks another one for bytes of an array that belongs to a third node. The head of what comes is
/// `bytes_pulled`, the number, the owner, and under which number of the owner's it was lent: an asker that has begun
/// anew may use a number of its own again.
struct pull_request {
  node_id owner;
  std::uint64_t lent = 0, number = 0;  ///< the owner's, the asker's
  logic::box4 where;
};
struct pull_refusal {
  node_id owner;
  std::uint64_t lent = 0, number = 0;
  std::string text;
};
void put(net::writer&, const pull_request&);
void put(net::writer&, const pull_refusal&);
void put(net::writer&, const node_id&);
void put_box(net::writer&, const logic::box4&);
struct pulled_head {
  std::uint64_t number = 0;
  node_id owner;
  std::uint64_t lent = 0;
};
void put(net::writer&, const pulled_head&);

/// An error as it is numbered in frames.
errc take_code(net::reader&);
/// After the kind has been taken off.
node_descriptor take_node_descriptor(net::reader&);
tasks take_tasks(net::reader&);
/// Reads the same one after the other, arrays first; a function that is called must be done with its argument when it
/// returns.
void each_of_tasks(net::reader&, const std::function<void(array_descriptor&)>&,
                   const std::function<void(task_descriptor&)>&);
/// Reads a descriptor that `put` has written.
task_descriptor take_task(net::reader&);
/// A `gaps` frame: the array, then as many as there are.
gaps take_gaps(net::reader&);
std::vector<task_end> take_done(net::reader&);
std::vector<box_request> take_requests(net::reader&);
std::vector<std::uint64_t> take_numbers(net::reader&);
pull_request take_pull(net::reader&);
pull_refusal take_pull_refusal(net::reader&);
node_id take_node(net::reader&);
logic::box4 take_box(net::reader&);
array_descriptor take_array(net::reader&);
/// With its kind.
pulled_head take_pulled_head(std::span<const std::byte>);

}  // namespace troupe::detail::wire
