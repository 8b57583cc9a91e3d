// What this file is for: which of the connections that processes open to each other becomes the session of the two.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// The process with the smaller id of two decides, so that both come to the same: it accepts at most one session at a
// time, its own or the other's, the first that is certain. Its own is certain from when it knows which process answers
// (`dialled`), the other's when the second connection asks (`asked`). The one with the larger id takes what it is
// given.
//
// A session that the decider believes to live may have ended for the other, which then dials again. The other says
// which one it has seen end (`last`); without that, its dial is one that crossed with the session that lives, and is
// not wanted. It says the same of one that has become silent and is to be replaced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>

#include "net/tcp/hello.hpp"
#include "net/transport.hpp"

namespace troupe::net::tcp {

/// Decides only: it knows no connections. Numbers are those of sessions (hello.hpp).
class peers {
 public:
  explicit peers(node_id self) : self_(self) {}

  /// Notes that this process dialled, and that one answered. `welcome`: go on with it, until `confirmed` or `gave_up`.
  /// `instead`: the session that is to be replaced by this one; 0: none.
  hello_result dialled(const identity&, std::uint64_t number, std::uint64_t instead = 0);
  /// True if the session that was dialled is still wanted.
  bool wanted(const node_id&, std::uint64_t number) const;
  /// The other side agrees, all connections stand: true if the session is to be, false if another came first.
  bool confirmed(const identity&, std::uint64_t number);
  void gave_up(const node_id&, std::uint64_t number);

  /// That one dialled. For bulk, `welcome` means that the session is to be.
  hello_result asked(const hello&) const;

  /// The session is to be, instead of any other with the same process.
  void begins(const identity&, std::uint64_t number);
  void ended(const node_id&, std::uint64_t number);
  bool has(const node_id&) const;
  /// The last session with it that has been seen to end, or that what is dialled is to replace; 0: none.
  std::uint64_t last(const node_id&) const;

 private:
  struct live {
    std::uint64_t incarnation, number;
  };
  struct entry {
    std::optional<live> now{};
    std::optional<std::uint64_t> own{};   ///< dialled by this process, not confirmed
    std::uint64_t last = 0, instead = 0;  ///< `instead` goes with `own`

    bool is_replaced() const { return now && instead != 0 && now->number == instead; }
  };

  const entry* find(const node_id&) const;
  void forget_oldest();

  const node_id self_;
  std::unordered_map<node_id, entry, node_id_hash> entries_;
  std::deque<node_id> past_;  ///< in the order in which sessions ended
};

}  // namespace troupe::net::tcp
