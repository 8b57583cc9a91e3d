// What this file is for: calls to executors and listeners that are due once the turn in which they became so has been
// left.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "actors/logic/scheduling/scope.hpp"

namespace troupe::detail {

class executor;

struct array_core;
class task_listener;

/// Gathers what is to be told after the turn. With the turn only; `calls`, which `take` returns, belongs to the thread
/// that took it and is made without the turn.
class notifications {
 public:
  /// A tile that a node is asked to copy home. The entry holds a handle of the array.
  struct tile {
    array_core* array;
    std::uint32_t number;
  };
  /// Messages that one turn has left to send.
  class calls {
   public:
    /// Calls executor::save for each tile, then after_turn of each executor and listener.
    void make() const;

   private:
    friend class notifications;
    executor* executor_ = nullptr;  // if there is one call only, which is mostly so: no memory is needed for it
    task_listener* listener_ = nullptr;
    std::vector<executor*> executors_;
    std::vector<task_listener*> listeners_;
    std::vector<std::pair<executor*, tile>> saves_;
  };

  /// Has executor::after_turn called, if the executor wants it now; others look at what they were given at once. Called
  /// after it has been given something.
  void add(executor&);
  void add(task_listener&);
  /// Has a node asked to save a tile; `array` has been kept (array_core::keep) and is let go of by the executor that
  /// saves it.
  void add_save(array_core& array, std::uint32_t number) { saves_.push_back({&array, number}); }
  bool empty() const { return executors_.empty() && listeners_.empty() && saves_.empty(); }

  /// Empties this and returns what is to be called. `node_with` returns the node that has the only current copy of a
  /// tile, or null: then the tile is not saved.
  template <class F>
  calls take(F&& node_with) {
    calls c;
    if (executors_.size() + listeners_.size() == 1 && saves_.empty()) {
      (executors_.empty() ? static_cast<void>(c.listener_ = listeners_.front())
                          : static_cast<void>(c.executor_ = executors_.front()));
      executors_.clear();
      listeners_.clear();
    } else {
      c.executors_ = std::exchange(executors_, {});
      c.listeners_ = std::exchange(listeners_, {});
      for (const tile& t : std::exchange(saves_, {})) c.saves_.emplace_back(node_with(t), t);
    }
    noted_.clear();
    return c;
  }

 private:
  std::vector<executor*> executors_;
  logic::executor_set noted_;  // of executors_
  std::vector<task_listener*> listeners_;
  std::vector<tile> saves_;
};

}  // namespace troupe::detail
