// What this file is for: the name of a node, which changes with the process that has its place.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mutex>
#include <string>
#include <utility>

#include "actors/protocol/executor_changes.hpp"

namespace troupe::detail {

/// The name of the node that has a place among the executors now. Thread-safe.
class node_label {
 public:
  void set(std::string name) {
    std::lock_guard hold(lock_);
    name_ = std::move(name);
    executors_changed();
  }
  std::string text() const {
    std::lock_guard hold(lock_);
    return name_;
  }
  bool is(const std::string& name) const {
    std::lock_guard hold(lock_);
    return !name.empty() && name_ == name;
  }

 private:
  mutable std::mutex lock_;
  std::string name_;
};

}  // namespace troupe::detail
