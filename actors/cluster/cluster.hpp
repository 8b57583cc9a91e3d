// What this file is for: membership at work: sessions, time and discovery go in, members come out.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Everything is told, and decided, on the transport's control thread; `arriving` and `arrived` on its bulk thread. What
// members say to each other above membership passes through, from members only, and after they have joined.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/actor.hpp"
#include "actors/logic/membership/membership.hpp"
#include "actors/protocol/node.hpp"
#include "net/transport.hpp"

namespace troupe::detail {

/// The events of a cluster. None may block.
class cluster_events {
 public:
  /// A link with a member has come up: beyond a mesh (logic::membership_options::mesh_max) only with some. The same
  /// node may come again after it was lost, and is as new then, on both sides.
  virtual void joined(const node_id&, const std::shared_ptr<net::session>&) = 0;
  /// The session with a member has ended and there is another, while the member was never lost: messages under way may
  /// have arrived or not.
  virtual void resumed(const node_id&, const std::shared_ptr<net::session>&) = 0;
  /// A member is silent, or its session has ended: it should be given nothing new.
  virtual void suspected(const node_id&) = 0;
  virtual void refuted(const node_id&) = 0;
  /// A member is gone, with all that it knew of this node; or only the link is (`node_end::let_go`).
  virtual void lost(const node_id&, logic::node_end why) = 0;
  /// An address led to no member, for what reason; it is dialled again as long as membership wants it.
  virtual void refused(const net::endpoint&, std::exception_ptr) {}
  /// An address led to a known process: a member, or this process itself.
  virtual void reached(const net::endpoint&) {}
  /// The view, or the set of its live members, has changed.
  virtual void view_changed() {}
  /// A node is a member now (`came`), or none any more (`went`); also of members with which there is no link because
  /// there are too many for that. The events above come in between.
  virtual void came(const node_id&) {}
  virtual void went(const node_id&, logic::node_end) {}

  /// A frame of a member, of a kind that is not membership's.
  virtual void frame(net::session&, std::span<const std::byte>) = 0;
  virtual net::pieces arriving(net::session&, std::span<const std::byte> head, std::uint64_t bytes) = 0;
  virtual void arrived(net::session&, std::span<const std::byte> head, bool whole) = 0;
  /// Membership has failed on this node, which can be no member any more. The transport still runs.
  virtual void failed(std::exception_ptr) {}
  /// The session is over and nothing of it is called any more; whether its peer is lost is told apart from that.
  virtual void ended(net::session&) {}

 protected:
  ~cluster_events() = default;
};

class cluster final : public actor, private net::transport_events {
 public:
  /// The transport and the events must outlive the cluster, and the transport must have been stopped before that ends.
  /// `self`: what the transport says of this process; where it names no addresses, those that the transport gets are
  /// told to others.
  cluster(net::transport&, const net::identity& self, const logic::membership_options&, cluster_events&);
  cluster(const cluster&) = delete;
  cluster& operator=(const cluster&) = delete;
  ~cluster();

  // ---- actor
  actor_kind kind() const override { return actor_kind::cluster; }
  std::string label() const override { return "cluster"; }
  void withdraw(std::exception_ptr why) override { events_.failed(std::move(why)); }

  /// Starts the transport; throws what that throws.
  void start();
  /// From discovery; any thread, at any time. Those that are known already cost nothing.
  void add_candidates(std::vector<net::endpoint>);
  /// The node is lost, and joins anew: what was agreed on with it does not hold any more. Any thread, later.
  void give_up(const node_id&);
  /// Beyond a mesh: has links with so many members at least from now on, if there are. Any thread.
  void want_links(std::size_t links);
  /// Calls `work_with` later on the control thread. Any thread.
  void reach(const node_id&);
  /// Says goodbye; `done` on the control thread, once no session is left, or after a second. Any thread.
  void leave(std::function<void()> done);

  // ---- on the control thread ----------------------------------------------------------------------------------------
  const logic::membership& members() const { return members_; }
  /// Has the member linked, and watched, until it is lost: there is work with it.
  void work_with(const node_id&);

 private:
  struct peer {
    std::shared_ptr<net::session> session;
    bool is_member = false;
  };

  void up(const std::shared_ptr<net::session>&) override;
  void frame(net::session&, std::span<const std::byte>) override;
  net::pieces arriving(net::session&, std::span<const std::byte> head, std::uint64_t bytes) override;
  void arrived(net::session&, std::span<const std::byte> head, bool whole) override;
  void down(net::session&, std::exception_ptr why) override;
  void refused(const net::endpoint&, std::exception_ptr why) override;
  void turned_away(const net::endpoint& from, std::exception_ptr why) override {
    events_.refused(from, std::move(why));
  }

  void look_up() override;
  template <class F>
  void guarded(F&&);
  void later(std::function<void()>);
  void take_frame(net::session&, std::span<const std::byte>);
  void take_refusal(const net::endpoint&, const std::exception_ptr& why);
  void wake();
  void act();
  void act_on(const logic::membership::action&);
  peer* peer_of(const node_id&);
  void check_left();

  net::transport& transport_;
  cluster_events& events_;
  logic::membership members_;
  const bool asks_where_;  // it listens
  std::unordered_map<node_id, peer, node_id_hash> peers_;
  net::transport::time_point armed_ = net::transport::time_point::max();
  net::transport::time_point looked_{};
  bool acting_ = false;
  bool has_failed_ = false;  // nothing is decided any more
  std::function<void()> left_;
};

}  // namespace troupe::detail
