// What this file is for: which addresses are dialled next, and how long to wait after a dial that led nowhere.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Pure; owned by membership. Addresses come from discovery and stay, or belong to nodes that were heard of and are
// forgotten some time after the node is gone. An address rests while the node that it leads to is connected.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "actors/protocol/node.hpp"

namespace troupe::logic {

using detail::node_address;
using detail::node_id;

class dialling {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  using milliseconds = std::chrono::milliseconds;

  struct limits {
    milliseconds first{100}, longest{10'000};  ///< between dials; doubles, and varies by a quarter
    milliseconds answer{6'000};                ///< a dial not answered by then has failed
    milliseconds forget{600'000};              ///< after which addresses of nodes that are gone are forgotten
    std::size_t addresses = 4096;
  };

  dialling(const limits& l, std::uint64_t seed) : limits_(l), random_(seed) {}

  /// Adds an address from discovery.
  void add(const node_address&, time_point now);
  /// Dials the node's addresses from `first` on, until it is reached.
  void want(const node_id&, const std::vector<node_address>&, time_point first);
  /// Notes that the node is connected, by this dial if it was one of ours; its addresses rest.
  void reached(const node_id&, const std::vector<node_address>&, const std::optional<node_address>& dialled);
  /// Notes that a connection with the node was of use: the next waits are short again.
  void proved(const node_id&);
  /// Notes that the node is not connected any more. Dials again `at_once`, or after a wait as if a dial had failed.
  void lost(const node_id&, time_point now, bool at_once);
  /// Forgets a node that will not come back; addresses that discovery named stay.
  void drop(const node_id&);
  /// Stops dialling a node that need not be reached: addresses that discovery did not name are forgotten, the others
  /// rest while it is believed to be there.
  void let_be(const node_id&, time_point now, bool is_there);
  /// Dials addresses that are not known yet once, to see whether the node is there.
  void probe_gone(const node_id&, const std::vector<node_address>&, time_point now);
  void refused(const node_address&, time_point now);
  /// Notes that the address leads to this process.
  void is_self(const node_address&);

  /// Returns the addresses to dial now.
  std::vector<node_address> due(time_point now);
  /// Returns when to call `due` again.
  time_point next() const;

  std::optional<node_id> node_at(const node_address&) const;
  std::size_t size() const { return entries_.size(); }

 private:
  struct entry {
    time_point next{}, until = time_point::max();
    milliseconds wait{};
    std::optional<node_id> node{};
    bool found = false;  // by discovery: stays
    bool rests = false;  // leads to a node that is connected, or to this one
    bool asked = false;  // a dial is under way, until `next` at most
    bool once = false;   // dialled once only: forgotten when that fails
  };
  entry* entry_of(const node_address&);
  void failed(entry&, time_point now);
  void changed() { next_.reset(); }

  const limits limits_;
  std::mt19937_64 random_;
  std::map<node_address, entry> entries_;
  mutable std::optional<time_point> next_;
};

}  // namespace troupe::logic
