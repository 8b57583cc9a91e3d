// What this file is for: the parts of recorded graphs that this node has, and what passes between parts on nodes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/execution/graph_part.hpp"
#include "actors/protocol/node.hpp"
#include "actors/wire/graph_messages.hpp"
#include "net/transport.hpp"

namespace troupe::detail {

class engine;

/// Thread-safe.
class graph_parts final : private graph_part::outlet, private task_listener {
 public:
  /// The sessions with other nodes. Called without this object's lock.
  struct lines {
    /// Returns the session that there is, or null.
    std::function<std::shared_ptr<net::session>(const node_id&)> there;
    /// The same. Null: it is made, and `linked` called, or after a while `give_up_link`.
    std::function<std::shared_ptr<net::session>(const node_id&)> made;
  };

  graph_parts(engine& the_engine, node_id self, std::string own_name, lines all)
      : engine_(the_engine), self_(self), own_name_(std::move(own_name)), lines_(std::move(all)) {}

  const node_id& self() const { return self_; }

  // ---- for graphs that this node has recorded
  /// Returns a number for a graph. Never used again.
  std::uint64_t new_number();
  graph_part::outlet& exit() { return *this; }
  /// The listener of the tasks that run parts: other parts are told of one that has failed, or never ran. The
  /// part_name is task_extra::for_listener.
  task_listener& ends() { return *this; }
  void add(const std::shared_ptr<recorded_graph>&);
  /// Sends frames that define a part to the node that has it. Throws error(node_lost) without a session.
  void define(const node_id& to, std::uint64_t graph, std::span<const net::writer>);
  /// Waits until all nodes to which parts were sent have built them: only then may a part be sent what crosses. Returns
  /// how many dependencies these parts have inside. Throws the first error of one that could not, or has gone.
  std::uint64_t await_ready(std::uint64_t graph);
  /// Forgets a graph, here and on the nodes that have parts of it. Any thread; no run is left.
  void drop(std::uint64_t graph, std::span<const node_id> members) noexcept;

  // ---- for graphs of others
  /// Returns this node's part of a graph of `owner`. Throws why there is none.
  std::shared_ptr<recorded_graph> find(const node_id& owner, std::uint64_t graph);

  // ---- from the transport
  static bool is_for_parts(wire::kind k) { return k >= wire::kind::graph_define && k <= wire::kind::graph_ready; }
  void frame(const node_id& from, std::span<const std::byte>);
  net::pieces arriving(const node_id& from, std::span<const std::byte> head, std::uint64_t bytes);
  void arrived(const node_id& from, std::span<const std::byte> head, bool whole);

  // ---- members
  void linked(const node_id&);
  void give_up_link(const node_id&);
  /// A member has gone: its graphs are forgotten, and those that it has a part of fail from now on.
  void lost(const node_id&, const std::exception_ptr& why);

 private:
  using key = std::pair<node_id, std::uint64_t>;  // owner and number of a graph
  struct entry {
    std::shared_ptr<recorded_graph> graph;           // null: it could not be built, or not all of it is here
    std::unique_ptr<wire::graph_definition> coming;  // not all of it is here
    std::vector<node_id> unlinked;                   // members without a session: the owner has no answer yet
  };
  /// A message that waits for a session.
  struct unsent {
    net::writer head;
    std::shared_ptr<std::vector<std::byte>> body;  // null: the head is a frame
  };
  // ---- graph_part::outlet
  void send(const part_name&, std::uint64_t run, std::uint32_t to, std::uint32_t crossing, const net::pieces&) override;
  void send_failure(const part_name&, std::uint64_t run, std::uint32_t to, std::uint32_t crossing,
                    const std::exception_ptr&) override;
  // ---- task_listener
  void granted(task_record&) override {}
  void retired(task_record&) override;
  void after_turn() override;

  void post(const node_id& to, unsent);
  static void put_on(net::session&, unsent);
  void take_definition(const node_id& owner, net::reader&);
  std::shared_ptr<recorded_graph> known(const node_id& owner, std::uint64_t graph) const;
  void fail(const node_id& from, const wire::graph_failure&);
  void answer(const node_id& owner, const wire::graph_answer&);
  void answered(const node_id& from, const wire::graph_answer&);

  engine& engine_;
  const node_id self_;
  const std::string own_name_;
  const lines lines_;

  mutable std::mutex lock_;  // never held while anything else is called
  std::uint64_t last_number_ = 0;
  std::map<key, entry> parts_;
  /// A graph of this node whose parts are being built elsewhere.
  struct definition {
    std::vector<node_id> awaited;
    std::uint64_t edges = 0;
    std::exception_ptr why_not;
  };
  std::map<std::uint64_t, definition> defined_;
  std::condition_variable answered_;
  std::unordered_map<node_id, std::vector<unsent>, node_id_hash> unsent_;
  // Bytes of crossings that are being written, by sender and head.
  std::map<std::pair<node_id, std::vector<std::byte>>, std::vector<std::byte>> coming_;
  struct ended_part {
    part_name name;
    std::uint64_t run;
    std::exception_ptr why;
  };
  std::vector<ended_part> ended_;  // since the turn was taken
};

}  // namespace troupe::detail
