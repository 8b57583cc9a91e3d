// What this file is for: imagined nodes on an imagined network: started, killed, paused, cut off, and always checked.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Nodes are real cluster drivers over the loopback network. `world::step` runs virtual time and checks after each piece
// of it what must hold at any time. What builds on members gets their frames by `on_frame`, and may derive from `node`
// to see more.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/cluster/cluster.hpp"
#include "actors/wire/node_names.hpp"
#include "net/loopback/network.hpp"

namespace test {

using namespace std::chrono_literals;
using troupe::detail::name_of;
using troupe::detail::node_id;
using troupe::logic::node_end;
using troupe::logic::node_state;
namespace net = troupe::net;

class world;

class node : public troupe::detail::cluster_events {
 public:
  node(world& w, std::uint16_t host, net::identity self, troupe::logic::membership_options options);
  virtual ~node();
  node(const node&) = delete;

  const node_id& id() const { return id_; }
  std::uint16_t host() const { return host_; }
  const net::node_id& wire_id() const { return self_.id; }
  const net::endpoint& at() const { return self_.listens_on.front(); }
  std::uint64_t incarnation() const { return self_.incarnation; }
  troupe::detail::cluster& cluster() const { return *cluster_; }
  const troupe::logic::membership& members() const { return cluster_->members(); }
  bool lives() const { return lives_; }
  bool is_paused() const { return paused_; }
  node_state sees(const node& other) const { return members().state_of(other.id()); }
  /// An event that the node was told, with the time.
  struct event {
    net::transport::time_point when;
    std::string what;
    node_id who;
    node_end why{};
  };
  const std::vector<event>& told() const { return told_; }
  /// When it lost that node as a member for the last time, and why.
  const event* loss_of(const node& other) const {
    for (auto e = told_.rbegin(); e != told_.rend(); ++e)
      if (e->what == "went" && e->who == other.id()) return &*e;
    return nullptr;
  }
  /// The session with a linked member, as told; null: there is none.
  std::shared_ptr<net::session> session_of(const node& other) const {
    const auto found = sessions_.find(other.id());
    return found == sessions_.end() ? nullptr : found->second;
  }
  std::size_t count(const std::string& what) const {
    return static_cast<std::size_t>(
        std::count_if(told_.begin(), told_.end(), [&](const event& e) { return e.what == what; }));
  }
  std::function<void(net::session&, std::span<const std::byte>)> on_frame;

  void joined(const node_id&, const std::shared_ptr<net::session>&) override;
  void resumed(const node_id&, const std::shared_ptr<net::session>&) override;
  void suspected(const node_id&) override;
  void refuted(const node_id&) override;
  void lost(const node_id&, node_end) override;
  void came(const node_id&) override;
  void went(const node_id&, node_end) override;
  void frame(net::session&, std::span<const std::byte>) override;
  net::pieces arriving(net::session&, std::span<const std::byte>, std::uint64_t) override { return {}; }
  void arrived(net::session&, std::span<const std::byte>, bool) override {}
  void ended(net::session&) override;

 private:
  friend class world;
  void note(const char* what, const node_id&, node_end = {});
  /// Checks that what the node was told fits what its membership says.
  void check() const;

  world& world_;
  const std::uint16_t host_;
  const net::identity self_;
  const node_id id_;
  std::unique_ptr<net::transport> transport_;
  std::unique_ptr<troupe::detail::cluster> cluster_;
  std::set<node_id> members_;         // as told
  std::map<node_id, bool> believed_;  // those that are linked, as told; whether suspect
  std::map<node_id, std::shared_ptr<net::session>> sessions_;
  std::vector<event> told_;
  bool lives_ = true, paused_ = false;
};

class world {
 public:
  explicit world(std::uint64_t seed) : network(seed), random(seed * 0x9e3779b97f4a7c15u + 1) {}

  /// A process on the host with that number, that discovery tells of those. Without `as`: with an id of its own.
  node& start(std::uint16_t host, const std::vector<net::endpoint>& seeds, const node* as = nullptr) {
    net::identity self;
    if (as) {
      self.id = as->wire_id();
      self.incarnation = as->incarnation() + 1;
    } else {
      for (auto& b : self.id.bytes) b = static_cast<std::uint8_t>(random());
      self.incarnation = 1;
    }
    self.cluster = "imagined";
    self.listens_on = {endpoint_of(host)};
    troupe::logic::membership_options own = options;
    own.seed = random();
    nodes.push_back(std::make_unique<node>(*this, host, self, own));
    nodes.back()->cluster().start();
    nodes.back()->cluster().add_candidates(seeds);
    return *nodes.back();
  }
  /// Starts a node that listens nowhere.
  node& start_deaf(const std::vector<net::endpoint>& seeds) {
    net::identity self;
    for (auto& b : self.id.bytes) b = static_cast<std::uint8_t>(random());
    self.incarnation = 1;
    self.cluster = "imagined";
    troupe::logic::membership_options own = options;
    own.seed = random();
    nodes.push_back(std::make_unique<node>(*this, std::uint16_t{0xffff}, self, own));
    nodes.back()->cluster().start();
    nodes.back()->cluster().add_candidates(seeds);
    return *nodes.back();
  }
  static net::endpoint endpoint_of(std::uint16_t host) {
    return {"10.0." + std::to_string(host / 250) + "." + std::to_string(host % 250 + 1), 4711};
  }
  /// So many that begin at once and are told of the first three; runs until all know all.
  void start_all(std::size_t n) {
    std::vector<net::endpoint> seeds;
    for (std::uint16_t i = 0; i < std::min<std::size_t>(n, 3); ++i) seeds.push_back(endpoint_of(i));
    for (std::uint16_t i = 0; i < n; ++i) start(i, seeds);
    ASSERT_TRUE(until([&] { return agree(); }, 20s)) << disagreement();
  }

  node& operator[](std::size_t i) { return *nodes[i]; }
  std::vector<node*> living() const {
    std::vector<node*> all;
    for (const auto& n : nodes)
      if (n->lives()) all.push_back(n.get());
    return all;
  }

  // ---- faults -------------------------------------------------------------------------------------------------------
  void kill(node& n) {
    n.lives_ = false;
    network.kill(n.wire_id());
  }
  /// Has the node say goodbye, and end once all have heard it.
  void leave(node& n) {
    n.lives_ = false;  // nobody need count it
    n.cluster().leave([this, &n] { network.at(network.now(), [this, &n] { network.kill(n.wire_id()); }); });
  }
  void pause(node& n) {
    n.paused_ = true;
    network.pause(n.wire_id());
  }
  void resume(node& n) {
    n.paused_ = false;
    network.resume(n.wire_id());
  }
  void cut(const node& from, const node& to) { network.cut(from.wire_id(), to.wire_id()); }
  void cut_both(const node& a, const node& b) {
    cut(a, b);
    cut(b, a);
  }
  void split(const std::vector<node*>& a, const std::vector<node*>& b) {
    for (const node* x : a)
      for (const node* y : b) cut_both(*x, *y);
  }
  void reset(const node& a, const node& b) { network.reset(a.wire_id(), b.wire_id()); }

  // ---- time ---------------------------------------------------------------------------------------------------------
  static constexpr auto piece = 100ms;
  void step(net::transport::time_point::duration d) {
    const auto end = network.now() + d;
    while (network.now() < end && !testing::Test::HasFatalFailure()) {
      network.run_for(std::min<net::transport::time_point::duration>(piece, end - network.now()));
      check();
    }
  }
  /// Looks every so often; `false`: not in time.
  bool until(const std::function<bool()>& f, net::transport::time_point::duration limit,
             net::transport::time_point::duration every = 20ms) {
    const auto end = network.now() + limit;
    for (; network.now() < end && !testing::Test::HasFatalFailure(); network.run_for(every), check())
      if (f()) return true;
    return f();
  }

  // ---- what holds ---------------------------------------------------------------------------------------------------
  /// All that live count all that live as members, and nobody else, and suspect no node that they are linked to.
  bool agree() const {
    const std::vector<node*> all = living();
    std::vector<node_id> ids;
    for (const node* n : all) ids.push_back(n->id());
    std::sort(ids.begin(), ids.end());
    for (const node* n : all) {
      if (n->members().live() != ids || n->members().members() != ids) return false;
      if (std::any_of(n->believed_.begin(), n->believed_.end(), [](const auto& x) { return x.second; })) return false;
    }
    return true;
  }
  std::string disagreement() const {
    std::string all;
    for (const node* n : living())
      for (const auto& other : nodes)
        if (const node_state s = n->sees(*other); other->lives() ? s != node_state::live : s == node_state::live)
          all += name(n->id()) + " sees " + name(other->id()) + (other->lives() ? "" : " (dead)") + " as " +
                 std::to_string(static_cast<int>(s)) + "; ";
    return all;
  }
  /// The last agreed view of each is the same, and has exactly those that live.
  bool agree_on_view() const {
    std::set<node_id> ids;
    for (const node* n : living()) ids.insert(n->id());
    for (const node* n : living()) {
      const auto& v = n->members().view();
      if (v != living().front()->members().view() || std::set(v.members.begin(), v.members.end()) != ids) return false;
    }
    return true;
  }
  void check() {
    // Where there are many nodes, some at a time: all have their turn.
    const std::size_t some = 1 + nodes.size() / 32;
    for (std::size_t i = ++checks_ % some; i < nodes.size(); i += some) {
      if (!nodes[i]->lives()) continue;
      nodes[i]->check();
      const auto& v = nodes[i]->members().view();
      const auto same = views_.find({v.founder, v.number});
      if (same == views_.end())
        views_.emplace(std::pair(v.founder, v.number), v.members);
      else
        ASSERT_EQ(same->second, v.members)
            << "two views with number " << v.number << " of the cluster that " << name(v.founder) << " began";
    }
  }
  /// How many sessions a node has with those that live, links among them.
  std::size_t connections(const node& n) const {
    return static_cast<std::size_t>(std::ranges::count_if(nodes, [&](const auto& other) {
      return other->lives() && network.are_connected(n.wire_id(), other->wire_id());
    }));
  }
  std::string name(const node_id& id) const {
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (nodes[i]->id() == id) return "node " + std::to_string(i);
    return "a stranger";
  }

  troupe::logic::membership_options options;
  net::loopback::network network;
  std::mt19937_64 random;
  std::vector<std::unique_ptr<node>> nodes;  // also those that are dead

 private:
  std::map<std::pair<node_id, std::uint64_t>, std::vector<node_id>> views_;  // all that were agreed on
  std::size_t checks_ = 0;
};

// ---- a node ---------------------------------------------------------------------------------------------------------

inline node::node(world& w, std::uint16_t host, net::identity self, troupe::logic::membership_options options)
    : world_(w), host_(host), self_(std::move(self)), id_(name_of(self_.id)) {
  net::transport_options o;
  o.self = self_;
  o.listen = self_.listens_on;
  o.proof.secrets.emplace_back();
  transport_ = w.network.attach(o);
  cluster_ = std::make_unique<troupe::detail::cluster>(*transport_, self_, options, *this);
}

inline node::~node() { transport_->stop(); }

inline void node::note(const char* what, const node_id& who, node_end why) {
  told_.push_back({world_.network.now(), what, who, why});
}

inline void node::joined(const node_id& n, const std::shared_ptr<net::session>& s) {
  note("joined", n);
  EXPECT_TRUE(members_.contains(n)) << "who is no member cannot join";
  EXPECT_TRUE(believed_.try_emplace(n, false).second) << "a member joined again without having been lost";
  EXPECT_EQ(name_of(s->peer().id), n);
  sessions_[n] = s;
}
inline void node::resumed(const node_id& n, const std::shared_ptr<net::session>& s) {
  note("resumed", n);
  sessions_[n] = s;
  EXPECT_TRUE(believed_.contains(n)) << "who is no member cannot go on";
}
inline void node::suspected(const node_id& n) {
  note("suspected", n);
  const auto found = believed_.find(n);
  EXPECT_TRUE(found != believed_.end() && !found->second);
  if (found != believed_.end()) found->second = true;
}
inline void node::refuted(const node_id& n) {
  note("refuted", n);
  const auto found = believed_.find(n);
  EXPECT_TRUE(found != believed_.end() && found->second);
  if (found != believed_.end()) found->second = false;
}
inline void node::lost(const node_id& n, node_end why) {
  note(why == node_end::let_go ? "let go" : "lost", n, why);
  EXPECT_EQ(believed_.erase(n), 1u) << "who is not linked cannot be lost";
  sessions_.erase(n);
}
inline void node::ended(net::session& s) {
  const auto found = sessions_.find(name_of(s.peer().id));
  if (found != sessions_.end() && found->second.get() == &s) sessions_.erase(found);
}
inline void node::came(const node_id& n) {
  note("came", n);
  EXPECT_TRUE(members_.insert(n).second) << "a member came again without having gone";
}
inline void node::went(const node_id& n, node_end why) {
  note("went", n, why);
  EXPECT_EQ(members_.erase(n), 1u) << "who is no member cannot go";
  EXPECT_FALSE(believed_.contains(n)) << "a link with one who is no member";
}
inline void node::frame(net::session& s, std::span<const std::byte> f) {
  EXPECT_TRUE(believed_.contains(name_of(s.peer().id))) << "a frame of one who is no member";
  if (on_frame) on_frame(s, f);
}

inline void node::check() const {
  for (const auto& [n, suspect] : believed_) {
    ASSERT_EQ(members().state_of(n), suspect ? node_state::suspect : node_state::live);
  }
  if (members().is_mesh()) {
    ASSERT_EQ(members_.size(), believed_.size()) << "in a mesh all members are linked";
  }
  if (members().state_of(id_) != node_state::live) return;
  std::vector<node_id> told(members_.begin(), members_.end());
  told.insert(std::lower_bound(told.begin(), told.end(), id_), id_);
  ASSERT_EQ(told, members().live());
}

}  // namespace test
