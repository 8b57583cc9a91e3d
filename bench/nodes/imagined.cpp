// Placement with executors that only say that they are done, and members over the network in virtual time.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "imagined.hpp"

#include "actors/cluster/cluster.hpp"
#include "actors/memory/record_pool.hpp"
#include "actors/memory/runtime_state.hpp"
#include "actors/placement/placement.hpp"
#include "net/loopback/network.hpp"
#include "tests/support/plain_device.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace troupe::detail {
void retain(task_record*) noexcept;
void release(task_record*) noexcept;
}  // namespace troupe::detail

namespace bench {

namespace {

namespace detail = troupe::detail;
namespace net = troupe::net;
using namespace std::chrono_literals;

// ---- placement -----------------------------------------------------------------------------------------------------

/// Keeps what it is given until it is asked to be done with it.
class imagined_node final : public detail::executor {
 public:
  explicit imagined_node(detail::executor_facts f) : facts_(std::move(f)) {}
  const detail::executor_facts& facts() const override { return facts_; }
  void run_tasks(std::span<detail::task_record* const> tasks, attention) override {
    held.insert(held.end(), tasks.begin(), tasks.end());
  }
  int sleepers() const override { return 0; }
  void wake_one() override {}
  void keep_watch() override {}
  std::size_t queued() const override { return held.size(); }
  std::size_t unstarted() const override { return held.size(); }
  float queued_ns() const override { return 0; }
  std::size_t take_back(std::span<detail::task_record*>,
                        const std::function<bool(const detail::task_record&)>&) override {
    return 0;
  }
  troupe::executor_report report() const override { return {.name = facts_.name}; }
  void start() override {}

  std::vector<detail::task_record*> held;

 private:
  detail::executor_facts facts_;
};

class imagined_runtime {
 public:
  explicit imagined_runtime(int nodes) : rt_(new detail::runtime_state) {
    rt_->host = std::make_unique<test::plain_device>();
    rt_->the_engine.store(reinterpret_cast<detail::engine*>(this));  // records ask only whether there is one
    placement_ = std::make_unique<detail::placement>(options_, *rt_, board_);
    add({0, "cpu:0", troupe::device_kind::cpu, detail::host_space, 1});
    detail::id_set offering;
    for (int i = 1; i <= nodes; ++i) {
      const auto id = static_cast<std::uint16_t>(i);
      add({id, "node:" + std::to_string(i), troupe::device_kind::node, id, 1});
      placement_->admit_node(*nodes_.back(), 8, {50'000.0F, 1.0F}, {50'000.0F, 1.0F}, true);
      offering.insert(id);
    }
    offered_ = offering;
    kernel_.nodes = &offered_;
    kernel_.kinds = 0;  // only nodes: what the cores would take is not of interest
    for (int i = 0; i < 1024; ++i) add_array();
  }
  imagined_runtime(const imagined_runtime&) = delete;
  imagined_runtime& operator=(const imagined_runtime&) = delete;
  ~imagined_runtime() {
    for (detail::array_core* a : arrays_) placement_->drop(a);
    done_with_all();
    placement_.reset();
    rt_->release();
  }

  void submit() {
    static constexpr detail::task_ops ops{
        nullptr, [](detail::task_record&) noexcept {}, [](detail::task_record&) noexcept {},
        [](detail::task_record&) noexcept -> void* { return nullptr; }, detail::kernel_info{.name = "k", .key = 1}};
    detail::task_record* t = detail::take_record(*rt_);
    t->ops = &ops;
    t->kernel = &kernel_;
    detail::access& x = t->accesses[t->access_count++];
    x = {};
    x.array = arrays_[next_++ % arrays_.size()];
    x.mode = troupe::access_mode::update;
    placement_->submit(t, true);
    placement_->take_turn(nullptr);
  }
  /// All that nodes were given, until nothing is left.
  void done_with_all() {
    for (bool some = true; some;) {
      some = false;
      for (const auto& n : nodes_) {
        if (n->held.empty()) continue;
        some = true;
        done_.swap(n->held);
        for (detail::task_record* t : done_) {
          if (!detail::claim(*t)) continue;
          t->measured_ns = 10'000;
          detail::fulfil(*t, board_);
        }
        placement_->report_done(done_, n.get());
        done_.clear();
      }
    }
  }
  std::uint64_t finished() const { return placement_->finished(); }

 private:
  void add(detail::executor_facts f) {
    nodes_.push_back(std::make_unique<imagined_node>(std::move(f)));
    placement_->add(*nodes_.back());
  }
  void add_array() {
    auto* a = new detail::array_core;
    a->spec.name = "array";
    a->states = &a->single;
    a->single.valid = true;
    a->bytes = &a->single_bytes;
    a->tile_bytes_max = 8;
    a->rt = rt_;
    rt_->retain();
    rt_->arrays.fetch_add(1);
    arrays_.push_back(a);
  }

  troupe::options options_;
  detail::runtime_state* rt_;
  detail::wait_table board_;
  detail::shown_ids offered_;
  detail::kernel_info kernel_{.name = "k", .key = 1};
  std::vector<std::unique_ptr<imagined_node>> nodes_;
  std::unique_ptr<detail::placement> placement_;
  std::vector<detail::array_core*> arrays_;
  std::vector<detail::task_record*> done_;
  std::size_t next_ = 0;
};

// ---- members -------------------------------------------------------------------------------------------------------

/// Hears everything and does nothing.
class imagined_member final : public troupe::detail::cluster_events {
 public:
  imagined_member(net::loopback::network& network, std::uint16_t host, std::mt19937_64& random) {
    for (auto& b : self_.id.bytes) b = static_cast<std::uint8_t>(random());
    self_.incarnation = 1;
    self_.cluster = "imagined";
    self_.listens_on = {at(host)};
    net::transport_options o;
    o.self = self_;
    o.listen = self_.listens_on;
    o.proof.secrets.emplace_back();
    transport_ = network.attach(o);
    troupe::logic::membership_options own;
    own.seed = random();
    cluster_ = std::make_unique<troupe::detail::cluster>(*transport_, self_, own, *this);
    cluster_->start();
    std::vector<net::endpoint> seeds;
    for (std::uint16_t i = 0; i < 3; ++i) seeds.push_back(at(i));
    cluster_->add_candidates(seeds);
  }
  imagined_member(const imagined_member&) = delete;
  imagined_member& operator=(const imagined_member&) = delete;
  ~imagined_member() { transport_->stop(); }

  [[nodiscard]] const net::node_id& id() const { return self_.id; }
  [[nodiscard]] std::size_t known() const { return cluster_->members().live().size(); }

  void joined(const detail::node_id&, const std::shared_ptr<net::session>&) override {}
  void resumed(const detail::node_id&, const std::shared_ptr<net::session>&) override {}
  void suspected(const detail::node_id&) override {}
  void refuted(const detail::node_id&) override {}
  void lost(const detail::node_id&, troupe::logic::node_end) override {}
  void frame(net::session&, std::span<const std::byte>) override {}
  net::pieces arriving(net::session&, std::span<const std::byte>, std::uint64_t) override { return {}; }
  void arrived(net::session&, std::span<const std::byte>, bool) override {}

 private:
  static net::endpoint at(std::uint16_t host) {
    return {"10.0." + std::to_string(host / 250) + "." + std::to_string(host % 250 + 1), 4711};
  }

  net::identity self_;
  std::unique_ptr<net::transport> transport_;
  std::unique_ptr<troupe::detail::cluster> cluster_;
};

}  // namespace

int imagined_nodes_max() { return troupe::logic::executors_max - 1; }

double ns_to_place_among(int nodes, int tasks) {
  imagined_runtime world(nodes);
  const int at_once = 1024;  // as many whatever the number of nodes
  const auto round = [&] {
    for (int i = 0; i < at_once; ++i) world.submit();
    world.done_with_all();
  };
  for (int i = 0; i < 8; ++i) round();
  const auto before = world.finished();
  const int rounds = std::max(1, tasks / at_once);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < rounds; ++i) round();
  const auto spent = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
  const auto ran = world.finished() - before;
  if (ran < static_cast<std::uint64_t>(rounds) * at_once)
    throw std::runtime_error("only " + std::to_string(ran) + " tasks have been placed and retired");
  return spent / (rounds * at_once);
}

traffic traffic_of_imagined(int count) {
  net::loopback::network network(19);
  std::mt19937_64 random(1);
  std::vector<std::unique_ptr<imagined_member>> members;
  const auto add = [&] {
    members.push_back(std::make_unique<imagined_member>(network, static_cast<std::uint16_t>(members.size()), random));
  };
  for (int i = 0; i < count; ++i) add();
  const auto all_know = [&] {
    return std::all_of(members.begin(), members.end(),
                       [&](const auto& m) { return m->known() == static_cast<std::size_t>(count); });
  };
  const auto end = network.now() + 30s;
  while (!all_know() && network.now() < end) network.run_for(100ms);
  if (!all_know()) throw std::runtime_error("the imagined nodes have not found each other");
  const auto most = [&] {
    std::map<const imagined_member*, std::uint64_t> before;
    for (const auto& m : members) before[m.get()] = network.bytes_sent(m->id());
    network.run_for(10s);
    std::uint64_t largest = 0;
    for (const auto& m : members) largest = std::max(largest, network.bytes_sent(m->id()) - before[m.get()]);
    return static_cast<double>(largest) / 10;
  };
  network.run_for(10s);  // and have agreed on a view
  traffic found;
  found.quiet = most();
  network.kill(members[5]->id());
  add();
  found.changing = most();
  return found;
}

}  // namespace bench
