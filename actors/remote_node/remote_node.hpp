// What this file is for: the actor of one other node: the executor that placement sees, and what comes from there.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   placement --run_tasks--> [queue] --after_turn--> frames --> the other node's node_service
//       ^                                                              |
//       +------ report_done <-- done frames, tiles that come home <----+
//
// The actor has no thread: the thread that has handed it something sends once the turn is left, and the transport's
// threads bring what comes. To placement the node is a device: it has a memory of its own, in which whole tiles live;
// what is written in parts, and reductions, goes through this node's memory. The actor's place among the executors
// stays while nodes come and go.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "actors/actor.hpp"
#include "actors/logic/scheduling/cost_model.hpp"
#include "actors/protocol/executor.hpp"
#include "actors/wire/task_messages.hpp"
#include "net/transport.hpp"

namespace troupe::detail {

class placement;
class wait_table;
struct runtime_state;

class node : public executor, public actor {
 public:
  actor_kind kind() const override { return actor_kind::remote_node; }
  std::string label() const override { return facts().name; }
  /// Takes all places for nodes that there are, this one among them, before any node joins. They stay as long as this
  /// one.
  virtual void meet(std::span<const std::shared_ptr<node>>) = 0;
  /// Takes the session of a node that has joined in this place: it may be given tasks of the kernels that it offers.
  virtual void join(std::shared_ptr<net::session>, const wire::node_descriptor&) = 0;
  /// Ends all that has to do with the session, which has ended. What was under way is placed again where that is
  /// harmless.
  virtual void lose(std::exception_ptr why) = 0;
  virtual bool is_there() const = 0;
  /// Notes that nothing is heard of the node, which is given nothing new for now; or (false) that it is heard of again.
  virtual void suspect(bool) = 0;
  /// Asks for all that only the node has of arrays whose memory the caller lent.
  virtual void bring_home_lent() = 0;
  /// Waits until nothing is under way there; false if the deadline passes before.
  virtual bool wait_idle(std::chrono::steady_clock::time_point) = 0;
  /// True if the node has nothing to do for this one, and no bytes are on their way between them.
  virtual bool is_idle() = 0;
  /// Adds what the nodes have done that were in this place and have gone.
  virtual void add_gone(executor_report&) const = 0;
  /// True if the node has a task that should have ended so long ago.
  virtual bool has_overdue(std::chrono::milliseconds) const = 0;
  /// Notes for how long the tasks of other nodes will keep this one busy, as it has told.
  virtual void know_others(std::chrono::nanoseconds) = 0;
  /// Notes how long a message to the node and its answer take at least.
  virtual void know_round_trip(std::chrono::nanoseconds) = 0;
  /// Returns how many copies to the node and from it have taught what the link costs.
  virtual std::uint32_t learned_transfers() = 0;
  /// Lowers the costs of the link, as placement::correct_link says.
  virtual void correct_link(std::uint64_t bytes, std::chrono::nanoseconds there, std::chrono::nanoseconds back,
                            std::chrono::nanoseconds round_trip) = 0;
  /// The name of the node that is there, for people.
  virtual std::string peer_name() const = 0;

  // ---- from the transport, of the session that joined ---------------------------------------------------------------
  virtual void frame(std::span<const std::byte>) = 0;
  virtual net::pieces arriving(std::span<const std::byte> head, std::uint64_t bytes) = 0;
  /// Notes that the transport does not write to that memory any more; not `whole`: the transfer may come again.
  virtual void arrived(std::span<const std::byte> head, bool whole) = 0;
};

/// `soon` runs what it is given a moment later, on the transport's control thread. `give_up` ends the session with the
/// node that is there, for that reason; any thread.
std::shared_ptr<node> make_node(executor_facts, placement&, wait_table&, runtime_state&,
                                std::function<void(std::function<void()>)> soon, failure_sink give_up);

}  // namespace troupe::detail
