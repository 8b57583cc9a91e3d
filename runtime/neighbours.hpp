// What this file is for: a runtime's part in a cluster: its transport, and for each member a node and a guest house.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <troupe/cluster.hpp>

#include "actors/cluster.hpp"
#include "actors/guest_house.hpp"
#include "actors/node.hpp"
#include "net/discovery.hpp"
#include "net/lasting.hpp"
#include "net/transport.hpp"

namespace troupe::detail {

class engine;

/// With what the environment says, where it is asked.
cluster_options with_environment(cluster_options);

class neighbours final : private cluster_events {
 public:
  /// Makes a place among the executors for each node that may come.
  neighbours(engine&, const cluster_options&, memory_space first_space);
  ~neighbours();

  /// Listens and looks for others. Throws error(bad_argument) or error(io_failed).
  void start();
  /// Others may be there.
  void look_at(std::vector<net::endpoint>);
  /// Takes no more tasks of others and asks them to fetch what is only here.
  void close_doors();
  /// Waits until they have; false: not in time.
  bool wait_released(std::chrono::steady_clock::time_point deadline);
  /// Brings home what others have of memory that the caller lent; false: not in time.
  bool bring_home(std::chrono::steady_clock::time_point deadline);
  /// Says goodbye, ends all sessions and joins all threads.
  void stop();

  std::vector<node_report> report() const;
  std::vector<std::string> addresses() const;
  /// Waits until so many nodes are there.
  bool wait_for(std::size_t nodes, std::chrono::steady_clock::time_point deadline) const;

 private:
  struct peer final : net::lasting_events {
    void frame(std::span<const std::byte>) override;
    net::pieces arriving(std::span<const std::byte> head, std::uint64_t bytes) override;
    void arrived(std::span<const std::byte> head) override;

    neighbours* all = nullptr;
    std::shared_ptr<net::lasting_session> line;
    std::shared_ptr<guest_house> guests;
    std::shared_ptr<node> place;  // null: its card has not come, or it waits for one
    wire::card card;
    bool has_card = false, suspect = false;
    bool leaves = false;           // and was let go while it had no place: it gets none
    net::session* over = nullptr;  // the connection that there is
    std::exception_ptr gone;       // why, while its connection has not ended
  };
  using peer_ptr = std::shared_ptr<peer>;

  void joined(const node_id&, const std::shared_ptr<net::session>&) override;
  void resumed(const node_id&, const std::shared_ptr<net::session>&) override;
  void suspected(const node_id&) override;
  void refuted(const node_id&) override;
  void lost(const node_id&, logic::node_end why) override;
  void frame(net::session&, std::span<const std::byte>) override;
  net::pieces arriving(net::session&, std::span<const std::byte> head, std::uint64_t bytes) override;
  void arrived(net::session&, std::span<const std::byte> head, bool whole) override;
  void ended(net::session&) override;

  void welcome(peer&, const wire::card&);
  void give_place(peer&);
  void suspect(peer&, bool);
  void part(const peer_ptr&, const std::exception_ptr& why);
  peer_ptr find(const node_id&) const;
  peer_ptr find(net::session&) const;
  std::shared_ptr<node> place_of(const peer&) const;
  peer_ptr take(const node_id&);
  std::vector<std::shared_ptr<guest_house>> guest_houses() const;
  std::vector<std::shared_ptr<guest_house>> guests_of(const node_id& owner) const;
  void give_up(net::session&, const std::exception_ptr& why);

  engine& house_;
  const cluster_options options_;
  net::discovery_options where_;
  std::unique_ptr<net::transport> transport_;
  std::unique_ptr<cluster> cluster_;
  std::unique_ptr<net::discovery> discovery_;  // null: nobody is looked for
  std::vector<std::shared_ptr<node>> places_;
  bool started_ = false;

  mutable std::mutex lock_;
  bool closing_ = false;
  mutable std::condition_variable changed_;
  std::unordered_map<node_id, peer_ptr, node_id_hash> peers_;
  std::deque<peer*> waiting_;                          // for a place, of those
  std::vector<peer_ptr> parting_;                      // gone, with a connection that has not ended
  std::vector<std::shared_ptr<guest_house>> leaving_;  // with tasks that have not ended
};

}  // namespace troupe::detail
