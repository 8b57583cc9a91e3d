// What this file is for: what a node service has to say to the owner of its tasks and to other nodes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "actors/protocol/node.hpp"
#include "actors/wire/task_messages.hpp"
#include "net/codec.hpp"
#include "net/transport.hpp"

namespace troupe::detail {

struct task_record;

/// Gathers short messages to the owner, which are sent together, and whatever must be sent without the service's lock.
/// Under that lock.
class outgoing {
 public:
  explicit outgoing(std::shared_ptr<net::session> owner) : owner_(std::move(owner)) {}

  void tell_end(const wire::task_end&);
  void ask_for(const wire::box_request&);
  /// Names bytes that were to be pulled and have not come; told before the ends of tasks that needed them.
  void tell_unfilled(const wire::box_request&);
  /// Sends what has been gathered.
  void flush();

  /// Bytes to send. They stay until they have been sent: those of a task's access, or a copy.
  struct body {
    std::vector<std::byte> head;
    net::const_pieces bytes;
    task_record* task = nullptr;  // its access stays open until it has been sent
    std::shared_ptr<net::session> over;
    std::shared_ptr<std::vector<std::byte>> copied{};
  };
  /// Frames to send once the lock has been released.
  struct batch {
    std::vector<body> bodies;
    std::vector<std::pair<std::shared_ptr<net::session>, net::writer>> answers;
    std::vector<std::pair<node_id, net::writer>> requests;
  };
  void add(body b) { later_.bodies.push_back(std::move(b)); }
  /// Answers a node that pulls.
  void answer(std::shared_ptr<net::session> line, net::writer frame) {
    later_.answers.emplace_back(std::move(line), std::move(frame));
  }
  /// Asks another node that the owner has named.
  void request(const node_id& n, net::writer frame) { later_.requests.emplace_back(n, std::move(frame)); }
  batch take() { return std::exchange(later_, {}); }

 private:
  /// Bytes from which gathered messages are sent: thousands of errors would be more than a frame holds.
  static constexpr std::size_t gathered_max = 48u << 10;
  void send(net::writer&);

  const std::shared_ptr<net::session> owner_;
  net::writer ends_, fetches_, unfilled_;
  batch later_;
};

}  // namespace troupe::detail
