// What this file is for: what the members of a cluster tell of themselves and of the links between them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// State of a member, as this node sees it.
enum class member_state : std::uint8_t {
  live,       ///< linked with this node, and heard of
  suspect,    ///< silent: it gets no new tasks
  leaving,    ///< takes no more tasks, and goes once it has handed over what only it has
  unreached,  ///< named by others, but without a link to this node
  unlinked,   ///< without a link to this node because neither of the two listens: nothing is wrong with it
};
/// The text of a state, for people: "live", "no link".
const char* text_of(member_state);

/// A member, this node or another one. Sizes are bytes. Counters begin when two nodes join; they are read while work
/// goes on, and each is exact for some moment.
struct member_report {
  std::string name{};
  std::string id{};       ///< 32 hexadecimal digits, anew for each process
  std::string address{};  ///< where it listens; empty: nowhere, or not known
  member_state state = member_state::unreached;
  std::uint64_t incarnation = 0;  ///< of the same id, the larger is the later
  bool is_self = false;           ///< true for this node
  /// True if the member has answered in time; else the members below are not known.
  bool answered = false;
  bool takes_work = false;            ///< `cluster_options::take_work`
  std::chrono::milliseconds up{};     ///< since its runtime was made
  int slots = 0;                      ///< tasks that it runs at once, on cores and devices
  int devices = 0;                    ///< executors of it that are not core groups
  int busy = 0;                       ///< slots with a task
  std::uint64_t queued = 0;           ///< tasks that are ready there and have not begun, of all nodes
  std::uint64_t tasks = 0;            ///< bodies that it has run, of all nodes
  std::uint64_t failed = 0;           ///< bodies of these that threw
  std::uint64_t kernels = 0;          ///< kernels that it offers
  std::uint64_t memory_used = 0;      ///< host memory that arrays hold there
  std::uint64_t memory_limit = 0;     ///< limit for arrays, `options::memory_bytes`; 0: none
  std::uint64_t memory_resident = 0;  ///< resident memory of the whole process
  std::uint64_t memory_machine = 0;   ///< memory of its machine
  double load = 0;                    ///< load of its machine: processes that run or want to, over the last minute
  /// Path of large data: "sockets" if no fabric was asked for, the fabric's name, or why there is none.
  std::string bulk{};
};

/// One direction of a link, as one end knows it.
struct link_way {
  /// Rate of real transfers of 64 KiB and more, in bytes as they are in memory, over about the last second in which
  /// some were under way; 0: there were none. Larger than the rate on the wire if the bytes could be compressed.
  double bytes_per_second = 0;
  std::uint64_t bytes = 0;         ///< over the wire, with all that frames and encryption add
  std::uint64_t fabric_bytes = 0;  ///< of these, through the trusted fabric
};

/// The link between two members; each pair is named once.
struct link_report {
  std::string from_id{}, from{};  ///< id and name of one end
  std::string to_id{}, to{};      ///< id and name of the other end
  /// Median of the last round trips; 0: none yet. On an idle link one is measured each second.
  std::chrono::nanoseconds round_trip{};
  link_way out{};            ///< from `from` to `to`
  link_way in{};             ///< from `to` to `from`
  std::uint64_t resets = 0;  ///< times its connection broke and another one took over
  bool suspect = false;      ///< true if one end hears nothing of the other
};

/// The members of a cluster and their links, as `runtime::query_cluster` has found them.
struct cluster_report {
  std::vector<member_report> members{};  ///< by name; this node is one of them
  std::vector<link_report> links{};      ///< by the names of their ends
};

}  // namespace troupe
