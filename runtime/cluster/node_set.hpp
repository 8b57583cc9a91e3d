// What this file is for: a runtime's part in a cluster: its transport, and for each member a node and a node service.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <troupe/cluster.hpp>
#include <troupe/cluster_report.hpp>

#include "actors/actor.hpp"
#include "actors/cluster/cluster.hpp"
#include "actors/logic/membership/round_trips.hpp"
#include "actors/node_service/node_service.hpp"
#include "actors/remote_node/remote_node.hpp"
#include "actors/wire/node_messages.hpp"
#include "net/bulk_fabric.hpp"
#include "net/discovery.hpp"
#include "net/lasting.hpp"
#include "net/transport.hpp"
#include "runtime/cluster/dial_refusals.hpp"
#include "runtime/cluster/graph_parts.hpp"
#include "runtime/cluster/open_surveys.hpp"
#include "runtime/cluster/report.hpp"

namespace troupe::detail {

class engine;

class node_set final : private cluster_events {
 public:
  /// Creates a place among the executors for each node that may come.
  node_set(engine&, const cluster_options&, memory_space first_space);
  ~node_set();

  /// Returns the network's part for threads that have nothing else to do; null if there is none.
  std::shared_ptr<net::control_poller> poller() { return transport_->poller(); }
  /// Listens and looks for other nodes. Throws error(bad_argument) or error(io_failed).
  void start();
  /// Adds addresses where other nodes may be.
  void look_at(std::vector<net::endpoint>);
  /// Takes no more tasks of other nodes and asks them to fetch the data that is only here.
  void close_intake();
  /// Waits until they have fetched it; false: not in time.
  bool wait_released(std::chrono::steady_clock::time_point deadline);
  /// Brings home the current bytes that other nodes have of memory lent by the caller; false: not in time.
  bool bring_home(std::chrono::steady_clock::time_point deadline);
  /// Says goodbye, ends all sessions and joins all threads.
  void stop();

  /// Returns the parts of graphs over several nodes that are here.
  graph_parts& parts() { return *graph_parts_; }
  /// Returns the node that has a place among the executors, which may be given a part of a graph. Throws
  /// error(node_lost), or error(not_supported) if it has a memory budget.
  node_id part_host(std::uint16_t executor) const;

  // ---- for tests of failures
  actor& membership_actor() { return *cluster_; }
  /// Returns the actors of the nodes that are there: the remote nodes, and the services of these.
  std::vector<std::shared_ptr<actor>> node_actors() const;
  std::vector<std::shared_ptr<actor>> service_actors() const;

  std::vector<node_report> report() const;
  /// Returns the sums of all nodes that have gone, as if they were one.
  executor_report gone() const;
  std::vector<link_report> links() const;
  std::vector<connection_failure> connection_failures() const;
  /// Asks all members; those that have not answered by the deadline are reported without their own figures.
  cluster_report query_cluster(std::chrono::steady_clock::time_point deadline);
  std::vector<std::string> addresses() const;
  /// Returns how often a node has come.
  std::uint64_t came() const;
  /// Waits until another node has come; false: not in time.
  bool wait_for_another(std::uint64_t came, std::chrono::steady_clock::time_point deadline) const;
  /// Gives up nodes that have tasks whose deadline passed so long ago.
  void give_up_overdue(std::chrono::milliseconds);
  /// Waits until so many nodes are connected; false: not in time.
  bool wait_for(std::size_t nodes, std::chrono::steady_clock::time_point deadline) const;

 private:
  struct peer final : net::lasting_events {
    void frame(std::span<const std::byte>) override;
    net::pieces arriving(std::span<const std::byte> head, std::uint64_t bytes) override;
    void arrived(std::span<const std::byte> head, bool whole) override;

    node_set* all = nullptr;
    std::shared_ptr<net::lasting_session> line;
    std::shared_ptr<node_service> service;
    std::shared_ptr<node> place;  // null: its descriptor has not come, or it waits for a place
    wire::node_descriptor descriptor;
    bool has_descriptor = false;
    std::atomic<bool> suspect{false};
    bool leaves = false;           // and was let go while it had no place: it gets none
    net::session* over = nullptr;  // the current connection; null: none
    std::exception_ptr gone;       // why, while its connection has not ended
    logic::round_trips trips;
    std::uint64_t pings = 0;  // on the control thread, like the next
    net::transport::time_point pinged{};
    /// State of the checks of the link; under the lock.
    struct link_check {
      net::transport::time_point last{}, begun{};
      net::transport::duration every{}, there{}, best_there{}, best_back{};  // there: 0 until it is known
      std::uint64_t number = 0;
      std::uint32_t taught = 0;  // transfers that its cost had been learned from
      int left = 0;              // checks left to do; 0: none is under way
    } check;
    /// Room for the bytes of a check, and of its answer; they are not looked at.
    struct check_room {
      std::vector<std::byte> bytes;
      bool in_use = false;
    } check_rooms[2];
    wire::load_notice told_load{};
    std::uint64_t loads_heard = 0;
  };
  using peer_ptr = std::shared_ptr<peer>;

  std::unique_ptr<net::bulk_fabric> open_fabric();
  void use_multicast(const cluster_options&, const net::credentials& proof);
  void add_places(int count, memory_space first_space);

  void joined(const node_id&, const std::shared_ptr<net::session>&) override;
  void resumed(const node_id&, const std::shared_ptr<net::session>&) override;
  void suspected(const node_id&) override;
  void refuted(const node_id&) override;
  void lost(const node_id&, logic::node_end why) override;
  void refused(const net::endpoint&, std::exception_ptr why) override;
  void reached(const net::endpoint&) override;
  void frame(net::session&, std::span<const std::byte>) override;
  net::pieces arriving(net::session&, std::span<const std::byte> head, std::uint64_t bytes) override;
  void arrived(net::session&, std::span<const std::byte> head, bool whole) override;
  void ended(net::session&) override;
  void failed(std::exception_ptr why) override;

  void welcome(peer&, const wire::node_descriptor&);
  void give_place(peer&);
  void suspect(peer&, bool);
  void part(const peer_ptr&, const std::exception_ptr& why);
  /// True if the peer's connection is broken or silent, and another node has been admitted under its name: the peer
  /// does not come back. Under the lock.
  bool is_succeeded(const peer&) const;
  peer_ptr find(const node_id&) const;
  std::shared_ptr<net::session> line_to(const node_id&, std::function<void()> too_late);
  peer_ptr find(net::session&) const;
  std::shared_ptr<node> place_of(const peer&) const;
  std::vector<std::shared_ptr<node_service>> node_services() const;
  std::vector<std::shared_ptr<node_service>> services_of(const node_id& owner) const;
  void give_up(net::session&, const std::exception_ptr& why);
  void give_up(const node& place);
  void supervise(const std::shared_ptr<actor>&);
  void end_all(const std::exception_ptr& why);
  void stop_all();
  void part_all(const std::exception_ptr& why);
  // notices.cpp
  void tell_again();
  void tell_load(std::span<const peer_ptr>);
  void look_for_links();
  void ping(std::span<const peer_ptr>);
  void hear(peer&, wire::kind, net::reader&);
  void hear_load(peer&, const wire::load_notice&);
  void answer(peer&, std::uint64_t number);
  // link_checks.cpp
  void check_links(std::span<const peer_ptr>);
  void send_check(const peer_ptr&);
  net::pieces check_arriving(peer&, wire::kind, std::uint64_t bytes);
  void check_arrived(peer&, std::span<const std::byte> head, bool whole);
  void check_ended(const peer_ptr&, std::uint64_t number);
  // surveys.cpp
  wire::self_descriptor describe() const;
  std::set<node_id> deaf_ones(std::chrono::steady_clock::time_point deadline) const;
  std::vector<wire::link_descriptor> own_links() const;
  heard_member heard(const peer&) const;
  heard_member heard_self(wire::self_descriptor) const;
  void note_answer(const peer&, wire::self_descriptor);

  engine& engine_;
  const cluster_options options_;
  net::discovery_options where_;
  std::string bulk_;  // how long bodies travel, for reports
  net::transport::time_point made_{};
  std::unique_ptr<net::transport> transport_;
  std::unique_ptr<cluster> cluster_;
  std::unique_ptr<net::discovery> discovery_;  // null: no other nodes are looked for
  std::unique_ptr<graph_parts> graph_parts_;
  std::vector<std::shared_ptr<node>> places_;
  bool started_ = false;
  std::mutex ending_;    // held while the part in the cluster ends
  actor_thread leaver_;  // ends it, if membership has failed
  // Notices between members; on the control thread.
  std::size_t turn_ = 0, links_wanted_ = 0;
  wire::self_descriptor last_descriptor_;
  net::transport::time_point described_{};

  mutable std::mutex lock_;
  bool closing_ = false;
  mutable std::condition_variable changed_;
  std::unordered_map<node_id, peer_ptr, node_id_hash> peers_;
  open_surveys surveys_;
  dial_refusals refusals_;
  std::uint64_t came_ = 0;                              // how often a place was given
  std::deque<peer*> waiting_;                           // peers that wait for a place
  std::vector<peer_ptr> parting_;                       // gone, with a connection that has not ended
  std::vector<std::shared_ptr<node_service>> leaving_;  // with tasks that have not ended
};

}  // namespace troupe::detail
