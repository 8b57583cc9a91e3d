// What this file is for: what the members of a cluster tell of themselves and of the links between them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// `runtime::links` tells what this node knows of its own links; `runtime::query_cluster` asks every member for the same and for
// what it has to do. Sizes are bytes, rates bytes per second. Counters begin when two nodes join; they are read while work
// goes on, and each is exact for some moment.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

enum class member_state : std::uint8_t {
  live,
  suspect,    ///< nothing is heard of it: it is given nothing new
  leaving,    ///< takes no more tasks, and goes once it has handed over what only it has
  unreached,  ///< others name it, and this node has no link to it
  unlinked,   ///< the same, because neither of the two listens: nothing is wrong with it
};
const char* text_of(member_state);

/// A member, this node or another one.
struct member_report {
  std::string name{};
  std::string id{};       ///< 32 hexadecimal digits, anew for each process
  std::string address{};  ///< where it listens; empty: nowhere, or not known
  member_state state = member_state::unreached;
  std::uint64_t incarnation = 0;  ///< of the same id, the larger is the later
  bool is_self = false;           ///< it is this node
  /// It has answered in time; else what follows is not known.
  bool answered = false;
  bool takes_work = false;            ///< `cluster_options::take_work`
  std::chrono::milliseconds up{};     ///< since its runtime was made
  int slots = 0;                      ///< tasks that it runs at once, on cores and devices
  int devices = 0;                    ///< of its executors, those that are no core groups
  int busy = 0;                       ///< slots with a task
  std::uint64_t queued = 0;           ///< tasks that are ready there and have not begun, of whomever
  std::uint64_t tasks = 0;            ///< bodies that it has run, of whomever
  std::uint64_t failed = 0;           ///< of these, those that threw
  std::uint64_t kernels = 0;          ///< that it offers
  std::uint64_t memory_used = 0;      ///< host memory that arrays hold there
  std::uint64_t memory_limit = 0;     ///< for arrays, `options::memory_bytes`; 0: none
  std::uint64_t memory_resident = 0;  ///< of the whole process
  std::uint64_t memory_machine = 0;   ///< that its machine has
  double load = 0;                    ///< of its machine: processes that run or want to, over the last minute
  /// How long bodies travel: "sockets" where no fabric was asked for, the fabric's name, or why there is none.
  std::string bulk{};
};

/// What one end of a link knows of one direction.
struct link_way {
  /// Of real transfers of 64 KiB and more, bytes as they are in memory, over about the last second in which some were
  /// under way; 0: there were none. More than the wire carries where they could be packed.
  double bytes_per_second = 0;
  std::uint64_t bytes = 0;         ///< over the wire, with all that frames and encryption add
  std::uint64_t fabric_bytes = 0;  ///< of these, through the trusted fabric
};

/// The link between two members; each pair is named once.
struct link_report {
  std::string from_id{}, from{};  ///< id and name of one end
  std::string to_id{}, to{};      ///< and of the other
  /// The median of the last measured; 0: none yet. On an idle link one a second is measured.
  std::chrono::nanoseconds round_trip{};
  link_way out{};            ///< from `from` to `to`
  link_way in{};             ///< from `to` to `from`
  std::uint64_t resets = 0;  ///< times its connection broke and another one took over
  bool suspect = false;      ///< one end hears nothing of the other
};

/// The members that are there and their links, as `runtime::query_cluster` has found them.
struct cluster_report {
  std::vector<member_report> members{};  ///< by name; this node is one of them
  std::vector<link_report> links{};      ///< by the names of their ends
};

}  // namespace troupe
