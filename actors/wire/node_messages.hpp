// What this file is for: what members tell each other of themselves and of their links, and how it is put into frames.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// None of it is needed for work to go on. docs/protocol.md says which node sends what. Decoding checks every number
// against what is left of the frame and against the limits below, and throws `error(protocol_error)`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/wire/task_messages.hpp"

namespace troupe::detail::wire {

/// Bytes of a `check` and of its answer: fewer than rates are made from, and than a fabric is used for.
inline constexpr std::size_t check_bytes = 48u << 10;
inline constexpr std::size_t links_max = 4096, bulk_text_max = 1024;

/// To each member on its own; at most every 250 ms, and only what has changed.
struct load_notice {
  std::uint32_t busy = 0;       ///< slots with a task
  std::uint64_t queued = 0;     ///< tasks that are ready and have not begun
  std::uint64_t others_us = 0;  ///< until what is not the receiver's is done, as predicted
  bool operator==(const load_notice&) const = default;
};

/// A direction of a link, as one end has measured it.
struct way {
  std::uint64_t bytes_per_second = 0, bytes = 0, fabric_bytes = 0;
};
struct link_descriptor {
  node_id peer{};
  std::string name{};
  bool suspect = false;
  std::uint64_t round_trip_ns = 0, resets = 0;
  way out{}, in{};
};

/// A member by itself.
struct self_descriptor {
  std::uint64_t number = 0;  ///< as it was asked
  bool takes_work = false, leaving = false;
  std::uint64_t up_ms = 0;
  std::uint32_t slots = 0, devices = 0, busy = 0;
  std::uint64_t queued = 0, tasks = 0, failed = 0, kernels = 0;
  std::uint64_t memory_used = 0, memory_limit = 0, memory_resident = 0, memory_machine = 0;
  std::uint32_t load_percent = 0;
  std::string bulk{};
  std::vector<link_descriptor> links{};
};

void put(net::writer&, const load_notice&);
void put(net::writer&, const self_descriptor&);
/// `ping`, `pong` and `describe`.
void put_numbered(net::writer&, kind, std::uint64_t number);

/// After the kind has been taken off.
load_notice take_load(net::reader&);
self_descriptor take_self(net::reader&);
std::uint64_t take_number(net::reader&);

}  // namespace troupe::detail::wire
