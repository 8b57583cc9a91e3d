// What this file is for: requests to nodes that this one has no connection with yet.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "actors/protocol/node.hpp"
#include "net/codec.hpp"

namespace troupe::detail {

/// Requests that are kept until their node is there. Thread-safe.
class unsent_requests {
 public:
  void add(const node_id& whom, net::writer frame) {
    std::lock_guard hold(lock_);
    by_node_[whom].push_back(std::move(frame));
  }
  /// Takes those to a node out, in the order in which they came.
  std::vector<net::writer> take(const node_id& whom) {
    std::lock_guard hold(lock_);
    const auto found = by_node_.find(whom);
    if (found == by_node_.end()) return {};
    std::vector<net::writer> all = std::move(found->second);
    by_node_.erase(found);
    return all;
  }
  void drop_all() {
    std::lock_guard hold(lock_);
    by_node_.clear();
  }

 private:
  std::mutex lock_;
  std::map<node_id, std::vector<net::writer>> by_node_;
};

}  // namespace troupe::detail
