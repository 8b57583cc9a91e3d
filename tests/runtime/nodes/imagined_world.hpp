// What this file is for: whole runtimes on an imagined network, in one thread and in imagined time: all but their
// wires, cores and clock is what runs anywhere.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "imagined_cores.hpp"
#include "net/loopback/network.hpp"
#include "runtime/engine.hpp"

namespace test {

using namespace std::chrono_literals;
namespace net = troupe::net;

class imagined_world;

/// A process with a runtime.
class imagined_node {
 public:
  imagined_node(imagined_world&, std::uint16_t host, int threads, const std::function<void(troupe::options&)>& more);
  ~imagined_node() { end(); }
  imagined_node(const imagined_node&) = delete;

  const std::string& name() const { return name_; }
  std::uint16_t host() const { return host_; }
  const net::endpoint& at() const { return at_; }
  const net::node_id& id() const { return id_; }
  bool lives() const { return lives_; }
  bool is_leaving() const { return leaving_; }
  engine& the_engine() const { return *engine_; }

  /// As its program would, after that time.
  void later(std::chrono::nanoseconds d, std::function<void()> f) { wire_->at(wire_->now() + d, std::move(f)); }

  void kill();
  void pause();
  void resume();
  bool is_paused() const { return paused_; }
  /// Takes no more work and wants what it has fetched.
  void close_intake();
  /// Ends it if that has been done; nobody may be in an event of the network.
  bool end_if_released();
  /// Ends what is left of a process that is gone, or of all at the end.
  void end();

 private:
  imagined_world& world_;
  const std::uint16_t host_;
  std::string name_;
  net::endpoint at_;
  net::node_id id_{};
  net::transport* wire_ = nullptr;  // the runtime's
  bool lives_ = true, paused_ = false, leaving_ = false;
  std::deque<std::function<void()>> long_work_;
  std::shared_ptr<engine> engine_;
};

class imagined_world {
 public:
  explicit imagined_world(std::uint64_t seed) : network(seed), random(seed ^ 0x5bd1e995) {}
  ~imagined_world() {
    for (auto& n : nodes) n->end();
  }

  std::uint64_t below(std::uint64_t n) { return random() % n; }
  bool chance(std::uint64_t of) { return below(of) == 0; }
  static net::endpoint endpoint_of(std::uint16_t host) {
    return {"10.0." + std::to_string(host / 250) + "." + std::to_string(host % 250 + 1), 4711};
  }
  imagined_node& start(std::uint16_t host, int threads, const std::function<void(troupe::options&)>& more = {}) {
    const std::vector<net::endpoint> seeds = found();
    nodes.push_back(std::make_unique<imagined_node>(*this, host, threads, more));
    nodes.back()->the_engine().others()->look_at(seeds);
    return *nodes.back();
  }
  std::vector<imagined_node*> living() const {
    std::vector<imagined_node*> all;
    for (const auto& n : nodes)
      if (n->lives()) all.push_back(n.get());
    return all;
  }
  /// Returns what discovery finds: some that live.
  std::vector<net::endpoint> found() {
    std::vector<net::endpoint> all;
    const auto there = living();
    for (int i = 0; i < 3 && !there.empty(); ++i) all.push_back(there[below(there.size())]->at());
    return all;
  }
  void run_for(std::chrono::nanoseconds d) { network.run_for(d); }

  net::loopback::network network;
  std::mt19937_64 random;
  std::chrono::nanoseconds body{1'000'000};           // about as long as a body takes
  std::vector<std::unique_ptr<imagined_node>> nodes;  // also those that are gone
};

// ---- a node ---------------------------------------------------------------------------------------------------------

inline imagined_node::imagined_node(imagined_world& w, std::uint16_t host, int threads,
                                    const std::function<void(troupe::options&)>& more)
    : world_(w), host_(host), name_("n" + std::to_string(w.nodes.size())), at_(imagined_world::endpoint_of(host)) {
  for (std::size_t i = 0; i < 16; i += 8) {
    const std::uint64_t r = w.random();
    std::memcpy(id_.bytes.data() + i, &r, 8);
  }
  troupe::options o;
  o.threads = threads;
  o.cost_cache = "none";
  o.decisions_kept = 0;
  o.cluster.from_environment = false;
  o.cluster.cluster_name = "imagined";
  o.cluster.node_name = name_;
  o.cluster.insecure_loopback = true;
  o.cluster.listen = o.cluster.announce = {at_.text()};
  if (more) more(o);
  runtime_environment s;
  s.clock = runtime_clock([&w] { return static_cast<std::uint64_t>(w.network.now().time_since_epoch().count()); });
  s.make_id = [this] { return id_; };
  s.make_transport = [this](net::transport_options t) {
    t.chunk_bytes = 256;  // so that something can happen in the middle of a transfer
    auto made = world_.network.attach(std::move(t));
    wire_ = made.get();
    return made;
  };
  s.make_cores = [this](core_group_options c, placement& p, wait_table& b, runtime_state& rt) {
    imagined_time t;
    t.later = [this](std::chrono::nanoseconds d, std::function<void()> f) { later(d, std::move(f)); };
    t.duration = [this] {
      const double u = static_cast<double>(1 + world_.below(1000)) / 1001;
      return std::chrono::nanoseconds(
          1000 + static_cast<std::int64_t>(-std::log(u) * static_cast<double>(world_.body.count())));
    };
    t.is_early = [this] { return world_.chance(2); };
    return make_imagined_cores(std::move(c), p, b, rt, std::move(t));
  };
  s.call_later = [this](std::chrono::milliseconds d, std::function<void()> f) { later(d, std::move(f)); };
  s.long_work = [this](std::function<void()> f) {
    long_work_.push_back(std::move(f));
    if (!lives_) return;
    later(std::chrono::microseconds(world_.below(5000)), [this] {
      const auto next = std::move(long_work_.front());
      long_work_.pop_front();
      next();
    });
  };
  s.wait = [this](const std::function<bool()>& f) { return lives_ && world_.network.run_until(f, 120s); };
  engine_ = std::make_shared<engine>(o, std::move(s));
  engine_->start();
}

inline void imagined_node::kill() {
  lives_ = false;
  world_.network.kill(id_);
}
inline void imagined_node::pause() {
  paused_ = true;
  world_.network.pause(id_);
}
inline void imagined_node::resume() {
  paused_ = false;
  world_.network.resume(id_);
}
inline void imagined_node::close_intake() {
  leaving_ = true;
  engine_->others()->close_intake();
}
inline bool imagined_node::end_if_released() {
  if (!lives_ || paused_ || !leaving_ || !engine_->others()->wait_released({}) || !is_quiet(engine_->placement_actor()))
    return false;
  engine_->others()->stop();  // says goodbye, for which time passes
  kill();
  end();
  return true;
}
inline void imagined_node::end() {
  if (!engine_) return;
  const auto work_off = [&] {
    for (; !long_work_.empty(); long_work_.pop_front()) long_work_.front()();
  };
  if (lives_) kill();
  work_off();
  engine_->others()->stop();
  work_off();
  engine_->shutdown({});
  engine_.reset();
}

}  // namespace test
