// What this file is for: the tasks that another node has sent here, with the arrays that they work on.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Each session has a node service. Its arrays are arrays of this runtime, and what it does to them are tasks of this
// runtime: bytes that come are written by a host access, a task runs as if it had been spawned here, what goes is read
// by a host access. So the order of the messages is the order of the program, and nothing else has to be ordered. It
// trusts its peer with work and not with memory: every number is checked against what it is about.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include <troupe/detail/engine.hpp>

#include "actors/actor.hpp"
#include "actors/wire/task_messages.hpp"
#include "net/transport.hpp"

namespace troupe::detail {

class placement;
class wait_table;
struct recorded_graph;
struct runtime_state;

/// Thread-safe.
class node_service : public actor {
 public:
  // ---- from the transport
  virtual void frame(std::span<const std::byte>) = 0;
  virtual net::pieces arriving(std::span<const std::byte> head, std::uint64_t bytes) = 0;
  /// Nothing writes to the memory given by `arriving` any more; not `whole`: the bytes may come again.
  virtual void arrived(std::span<const std::byte> head, bool whole) = 0;
  // ---- from node services of the same owner on other nodes
  /// Asks for a box that the owner has lent here; answered over `line`.
  virtual void pull(const wire::pull_request&, const std::shared_ptr<net::session>& line) = 0;
  virtual void cannot_pull(const wire::pull_refusal&, const node_id& by) = 0;
  virtual net::pieces pulled_arriving(const wire::pulled_head&, std::uint64_t bytes, const node_id& from) = 0;
  virtual void pulled_arrived(const wire::pulled_head&, const node_id& from, bool whole) = 0;
  /// Notes that a third node has gone: its bytes will not come.
  virtual void lost(const node_id&) = 0;
  /// Notes that there is a session with a third node now.
  virtual void linked(const node_id&) = 0;
  /// Notes that there was to be a session with a third node by now. What waits for one will not come.
  virtual void give_up_link(const node_id&) = 0;
  /// Sends what has been added up of partials: tasks that take long are not waited for. A while after it was asked for.
  virtual void close_sums() = 0;
  /// Takes no more tasks, and asks the owner to fetch what is here.
  virtual void close_intake() = 0;
  virtual node_id owner() const = 0;
  /// True if the owner has fetched what is here after `close_intake`, or the session has ended.
  virtual bool is_released() const = 0;
  /// Notes that the session has ended. Tasks that have not started are cancelled, running ones are asked to stop.
  virtual void leave() = 0;
  /// Returns the listener of this service's tasks.
  virtual const task_listener* listener() const = 0;
  /// True if no task or host access of the service is left in the runtime. After `leave` it stays so.
  virtual bool is_empty() const = 0;
};

/// True if messages of that kind are for a node service; the others are for a node.
bool is_for_node_service(wire::kind);

/// Returns the session with another node. Null: there is none yet; it is made, and `linked` called, or after a while
/// `give_up_link`. Not called with a node service's lock held.
using find_line = std::function<std::shared_ptr<net::session>(const node_id&)>;

/// Returns this node's part of one of the owner's recorded graphs, by the owner's number. Throws an error where there is
/// none. Called with a node service's lock held.
using find_part = std::function<std::shared_ptr<recorded_graph>(std::uint64_t)>;

/// `close_sums_later` has `close_sums` called a moment later, not at once; called with the service's lock held. `give_up`
/// ends the session, for that reason; any thread.
std::shared_ptr<node_service> make_node_service(engine&, placement&, wait_table&, runtime_state&,
                                                std::shared_ptr<net::session>, find_line, find_part,
                                                std::function<void()> close_sums_later, failure_sink give_up);

}  // namespace troupe::detail
