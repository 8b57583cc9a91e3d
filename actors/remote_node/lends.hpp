// What this file is for: which boxes a node is to pull from a third one, and which this node's peers are told to keep.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/logic/data/array_core.hpp"
#include "actors/logic/data/promise.hpp"
#include "actors/protocol/memory_space.hpp"
#include "actors/wire/task_messages.hpp"

namespace troupe::detail {

/// A box of a tile that the lender keeps for the borrower, which has been told to pull it under that number. Nodes are
/// named by their memory spaces.
struct lend_order {
  memory_space lender = 0;
  node_id lender_id{};
  std::uint64_t number = 0, array = 0;
  std::uint32_t tile = 0, version = 0;
  logic::box4 where;
  memory_space borrower = 0;
  std::uint64_t writer = 0;  // the task that is to write it, by its sequence; 0: it is there, in that version
};

/// Keeps what one node's actor has to do with lends: as the borrower's, the lenders of the task that is being encoded
/// and the orders for them; as the lender's, orders whose tile is still in the queue to be sent there.
///
/// A part of a node's actor, under the actor's lock. What take() returns is for the actors of other nodes, each of
/// which has a lock of its own, so it is carried out without the lock.
class lends {
 public:
  // ---- the borrower -------------------------------------------------------------------------------------------------
  /// Begins a task: it has no lenders yet.
  void begin_task() {
    lenders_.clear();
    promised_.clear();
  }
  /// Adds a box that the task is promised. `id`: of the node that promises it.
  void add_promised(const promise& p, const node_id& id) { promised_.push_back({p, id}); }
  bool has_promised() const { return !promised_.empty(); }
  struct promised_box {
    promise what;
    node_id id;
  };
  /// Takes a box that the task is promised; nothing if it is not.
  std::optional<promised_box> take_promised(const array_core& a, std::uint32_t tile, const logic::box4& where) {
    for (auto p = promised_.begin(); p != promised_.end(); ++p) {
      if (p->what.array != &a || p->what.tile != tile || p->what.where != where) continue;
      const promised_box found = *p;
      promised_.erase(p);
      return found;
    }
    return {};
  }
  /// Takes the boxes that the task is promised and has not taken.
  std::vector<promised_box> take_unused() { return std::exchange(promised_, {}); }
  /// Adds a lender for the task: `who` has that version of the tile.
  void add_lender(const array_core* a, std::uint32_t tile, std::uint32_t version, memory_space who, const node_id& id) {
    lenders_.push_back({a, tile, version, who, id});
  }
  /// True if some lender of the task has the tile.
  bool has_lender(const array_core& a, std::uint32_t tile) const { return find(a, tile) != nullptr; }
  /// Orders a box of a tile that has a lender, for `borrower`, under a number that no other lend of this runtime has.
  /// The order stays with the lends until take().
  const lend_order& order(const array_core& a, std::uint32_t tile, const logic::box4& where, std::uint64_t number,
                          memory_space borrower) {
    const source& l = *find(a, tile);
    return orders_.emplace_back(lend_order{l.who, l.id, number, a.id, l.tile, l.version, where, borrower});
  }
  /// Has a lender told to keep that box no longer.
  void give_up(memory_space lender, std::uint64_t number) { unlends_.emplace_back(lender, number); }

  // ---- the lender ---------------------------------------------------------------------------------------------------
  /// Keeps an order until what it asks for has been sent to the node.
  void wait(const lend_order& o) { waiting_.push_back(o); }
  /// Keeps an order of what a task is to write that is still in the queue.
  void wait_for_writer(const lend_order& o) { by_writer_[o.writer].push_back(o); }
  /// Returns the orders that wait for a task, which has just been sent or was given back.
  std::vector<lend_order> take_waiting_for(std::uint64_t writer) {
    if (by_writer_.empty()) return {};
    const auto known = by_writer_.find(writer);
    if (known == by_writer_.end()) return {};
    std::vector<lend_order> all = std::move(known->second);
    by_writer_.erase(known);
    return all;
  }
  /// Refuses an order: its borrower is told.
  void refuse(const lend_order& o) { refused_.push_back(o); }
  /// Tries the orders that wait: those for which try_to(order) is true have been told to the node. `more`: tasks are
  /// still queued, so the others go on waiting; else they are refused.
  template <class F>
  void retry(bool more, F&& try_to) {
    if (waiting_.empty()) return;
    std::erase_if(waiting_, [&](const lend_order& o) {
      if (try_to(o)) return true;
      if (!more) refused_.push_back(o);
      return !more;
    });
  }
  /// Refuses the orders that wait for tasks: no task is queued.
  void refuse_writers() {
    for (const auto& [writer, all] : by_writer_) refused_.insert(refused_.end(), all.begin(), all.end());
    by_writer_.clear();
  }
  /// Forgets an order that waits: its borrower has given it up.
  void forget(std::uint64_t number) {
    const auto is_it = [&](const lend_order& o) { return o.number == number; };
    std::erase_if(waiting_, is_it);
    for (auto& [writer, all] : by_writer_) std::erase_if(all, is_it);
  }
  /// Refuses all orders that wait: the node has gone.
  void refuse_waiting() {
    refused_.insert(refused_.end(), waiting_.begin(), waiting_.end());
    waiting_.clear();
    refuse_writers();
  }

  /// Messages for the actors of other nodes.
  struct news {
    std::vector<lend_order> orders;   // for their lenders
    std::vector<lend_order> refused;  // for their borrowers
    std::vector<std::pair<memory_space, std::uint64_t>> given_up;
  };
  news take() { return {std::exchange(orders_, {}), std::exchange(refused_, {}), std::exchange(unlends_, {})}; }

 private:
  struct source {
    const array_core* array;
    std::uint32_t tile, version;
    memory_space who;
    node_id id;
  };
  const source* find(const array_core& a, std::uint32_t tile) const {
    for (const source& l : lenders_)
      if (l.array == &a && l.tile == tile) return &l;
    return nullptr;
  }

  std::vector<source> lenders_;  // of the task that is being encoded
  std::vector<promised_box> promised_;
  std::unordered_map<std::uint64_t, std::vector<lend_order>> by_writer_;
  std::vector<lend_order> orders_, waiting_, refused_;
  std::vector<std::pair<memory_space, std::uint64_t>> unlends_;
};

}  // namespace troupe::detail
