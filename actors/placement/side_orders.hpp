// What this file is for: what is ordered in side turns: the order of each side, and which tasks may be in it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "actors/logic/data/dependencies.hpp"
#include "actors/placement/side_turns.hpp"

namespace troupe::detail {

/// The orders of all sides beside that of the turn, `main`. A task is ordered aside only if that touches nothing but
/// arrays of its side, and tasks that were ordered there or in turns. What says so is for whoever has the side turn of
/// that side, the rest with the turn.
class side_orders {
 public:
  side_orders(logic::dependencies::callbacks& c, logic::dependencies& main) : callbacks_(c), main_(main) {}

  /// True if a call is of a kind that may be ordered aside: it has the usual priority and names whole tiles only. Any
  /// thread.
  static bool is_simple(const task_record&);
  /// True if a call for which that is true may be ordered aside now: the arrays belong to the side or come to it now,
  /// they have been written as far as it reads them, nothing about them has failed or is half done, and no unfinished
  /// task that it would have to come after is of another side. With the side turn.
  bool may_take(const side_turns&, std::size_t side, const task_record&) const;
  /// Orders a task for which `may_take` was true; see dependencies::order. With the side turn. Throws std::bad_alloc.
  void order(std::size_t side, task_record& t) {
    one& s = (*all_)[side];
    s.order.order(t, s.made);
    ++s.ordered;
  }

  /// Makes the sides' orders, which stay; false if there is no memory for them.
  bool make();
  bool exist() const { return all_ != nullptr; }
  /// Has all orders go on from the same number, and returns it.
  std::uint64_t even_out();
  /// See task_graph::forget_all.
  void forget_all();
  /// Tasks that have been ordered aside so far.
  std::uint64_t ordered() const;

 private:
  struct alignas(64) one {
    one(logic::dependencies::callbacks& c, logic::dependencies& main, std::uint64_t series) : order(c, main, series) {}
    logic::dependencies order;
    std::vector<task_record*> made;  // stays empty: only reductions make tasks
    std::uint64_t ordered = 0;
  };

  logic::dependencies::callbacks& callbacks_;
  logic::dependencies& main_;
  std::unique_ptr<std::array<one, side_turns::sides>> all_;
};

}  // namespace troupe::detail
