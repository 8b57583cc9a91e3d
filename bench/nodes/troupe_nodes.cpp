// Troupe between processes: the owner here, workers that it starts.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "compute.hpp"
#include "contender.hpp"
#include "kernels.hpp"
#include "worker.hpp"

#include "../workloads.hpp"
#include "tests/support/chain_kernels.hpp"
#include "tests/support/nodes.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

namespace bench {

namespace {

using clock = std::chrono::steady_clock;
using numbers = troupe::array<std::uint64_t, 1>;

double since(clock::time_point begin) { return std::chrono::duration<double, std::nano>(clock::now() - begin).count(); }

/// An owner in this process and workers in others, which know each other. Not bound, there is one worker.
class some_nodes {
 public:
  /// Starts all of them with a thread for each core of theirs, which they are bound to where `bound`.
  some_nodes(const link& by, bool bound, const crowd& all) : by_(by), bound_(bound), all_(all) {
    const std::string secret = by.secure ? cluster_secret() : "-";
    const auto at = [&](int host) { return address_of(by.over, host) + ":0"; };
    const int threads = static_cast<int>(all.cores);
    on_this_host(by.over, [&] {
      const bound_to mine(cores_of(0));
      auto options = test::owner_options(secret);
      options.threads = threads;
      options.cluster.listen = {at(0)};
      options.cluster.trusted_fabric = by.fabric;
      owner_.emplace(std::move(options));
    });
    // Not there: they would end with that thread.
    auto where = on_other_host(by.over);
    where.environment.emplace_back("OPENBLAS_NUM_THREADS=1");
    if (by.fabric) where.environment.emplace_back("TEST_TRUSTED_FABRIC=1");
    on.push_back({.where = troupe::scope::here()});
    for (std::size_t node = 1; node < all.nodes; ++node) {
      const bound_to its(cores_of(node));
      const std::string name = "worker" + (node == 1 ? "" : std::to_string(node));
      workers_.push_back(
          std::make_unique<test::worker>(name, secret, owner_->addresses().front(), at(1), where, threads));
      on.push_back({.where = troupe::scope::at(name)});
    }
    if (!owner_->wait_for_nodes(workers_.size(), std::chrono::seconds(10)))
      throw std::runtime_error("the other nodes did not come: " + workers_.front()->process.err());
  }

  [[nodiscard]] bool is(const link& by, bool bound, const crowd& all) const {
    return by == by_ && bound == bound_ && all == all_;
  }
  /// The cores that a node is bound to; all, where it is not.
  [[nodiscard]] std::vector<int> cores_of(std::size_t node) const {
    std::vector<int> some = cores();
    if (!bound_) return some;
    some.erase(some.begin(), some.begin() + static_cast<std::ptrdiff_t>(node * all_.cores));
    some.resize(all_.cores);
    return some;
  }
  troupe::runtime& owner() { return *owner_; }
  std::uint64_t copied_there() {
    workers_.front()->process.tell("copied");
    return std::stoull(workers_.front()->process.line_after("copied "));
  }
  double cpu_there() { return processor_time_of(workers_.front()->process.id()); }
  std::uint64_t ran_there() {
    std::uint64_t n = 0;
    for (const auto& node : owner_->nodes()) n += node.tasks;
    return n;
  }

  std::vector<troupe::task_options> on;  // by node, 0 here
  [[nodiscard]] const troupe::task_options& there() const { return on.at(1); }
  std::map<std::size_t, numbers> moved;  // by size in bytes
  std::vector<troupe::array<int, 1>> updated;
  troupe::array<double, 2> matrix;

 private:
  const link by_;
  const bool bound_;
  const crowd all_;
  std::optional<troupe::runtime> owner_;
  std::vector<std::unique_ptr<test::worker>> workers_;  // end first: their input does
};

/// A graph in steps, of which each node has a part of its own.
class steps_over_nodes {
 public:
  steps_over_nodes(some_nodes& n, std::size_t nodes, const step_shape& shape)
      : owner_(n.owner()), on_(n.on), nodes_(nodes), problem_(shape) {
    for (std::size_t i = 0; i < problem_.outputs(); ++i)
      outputs_.push_back(owner_.array<std::uint64_t, 1>({2}, troupe::tiles(2)));
    for (std::size_t step = 0; step < 2 * problem_.sets(); ++step)
      for (std::size_t at = 0; at < shape.width; ++at) {
        auto& list = inputs_.emplace_back();
        for (const std::uint32_t other : problem_.inputs(step + 2 * problem_.sets(), at))
          list.push_back(outputs_[problem_.output_of(0, step + 1, other)]);
      }
  }

  [[nodiscard]] double spawned() const {
    const auto begin = clock::now();
    spawn_all(owner_);
    owner_.wait_all();
    const double spent = since(begin);
    check();
    return spent;
  }
  [[nodiscard]] double recorded() const {
    const troupe::graph all = owner_.record([&](troupe::recorder& r) { spawn_all(r); });
    owner_.run(all).get();  // memory that is used for the first time, as the other's is by then
    const auto begin = clock::now();
    owner_.run(all).get();
    const double spent = since(begin);
    check();
    return spent;
  }
  [[nodiscard]] std::size_t tasks_there() const {
    std::size_t n = 0;
    for (std::size_t at = 0; at < problem_.shape().width; ++at) n += node_of(at) != 0 ? 1 : 0;
    return n * problem_.shape().steps;
  }

 private:
  [[nodiscard]] std::size_t node_of(std::size_t at) const { return at * nodes_ / problem_.shape().width; }
  template <class Submitter>
  void spawn_all(Submitter& to) const {
    static const std::vector<numbers> none;
    const auto& shape = problem_.shape();
    for (std::size_t task = 0; task < problem_.tasks(); ++task) {
      const auto [graph, step, at] = problem_.point_of(task);
      const step_call call{.iterations = problem_.iterations_of(step, at),
                           .step = static_cast<std::uint32_t>(step),
                           .at = static_cast<std::uint32_t>(at)};
      const auto& inputs = step == 0 ? none : inputs_[step % (2 * problem_.sets()) * shape.width + at];
      to.spawn(on_[node_of(at)], step_of_any, call, problem_.inputs(step, at), troupe::read_all(inputs),
               troupe::write(outputs_[problem_.output_of(graph, step, at)]));
    }
  }
  void check() const {
    const auto& shape = problem_.shape();
    for (std::size_t at = 0; at < shape.width; ++at)
      if (outputs_[problem_.output_of(0, shape.steps - 1, at)].read()(0) != shape.steps - 1)
        throw wrong_answer("a graph in steps did not come to its end");
  }

  troupe::runtime& owner_;
  const std::vector<troupe::task_options>& on_;
  const std::size_t nodes_;
  const step_problem problem_;
  std::vector<numbers> outputs_;
  std::vector<std::vector<numbers>> inputs_;  // by step, as they come again, and point
};

class troupe_nodes final : public node_contender {
 public:
  std::string name() const override { return "troupe"; }
  std::string description() const override {
    return "troupe, an owner here and workers in other processes, a thread for each core";
  }
  void stop() override { nodes_.reset(); }

  std::vector<double> round_trips(const link& by, std::size_t count) override {
    auto& n = nodes(by);
    const auto before = n.ran_there();
    std::vector<double> taken(count);
    for (auto& nanoseconds : taken) {
      const auto begin = clock::now();
      n.owner().spawn(n.there(), nothing).get();
      nanoseconds = since(begin);
    }
    expect(n, before, count);
    return taken;
  }

  std::optional<double> tasks(const link& by, std::size_t count, bool with_data) override {
    auto& n = nodes(by);
    auto& owner = n.owner();
    if (with_data && n.updated.empty()) {
      for (int i = 0; i < 64; ++i) n.updated.push_back(owner.filled<int>({16}, troupe::tiles(16), 0));
      for (const auto& one : n.updated) owner.spawn(n.there(), update_nothing, troupe::update(one));
      owner.wait_all();
    }
    const auto before = n.ran_there();
    const auto begin = clock::now();
    for (std::size_t i = 0; i < count; ++i) {
      if (with_data)
        owner.spawn(n.there(), update_nothing, troupe::update(n.updated[i % n.updated.size()]));
      else
        owner.spawn(n.there(), nothing);
    }
    owner.wait_all();
    const auto spent = since(begin);
    expect(n, before, count);
    return spent;
  }

  std::vector<double> moves(const link& by, std::size_t bytes, int count) override {
    auto& n = nodes(by);
    std::vector<double> taken;
    const auto& data = filled(n, bytes);
    const auto before = n.owner().nodes().at(0).fabric_out;
    for (int i = 0; i < count; ++i) taken.push_back(moved(n, data));
    if (by.fabric && n.owner().nodes().at(0).fabric_out - before < bytes * static_cast<std::size_t>(count))
      throw missing("net_fabric: bodies do not go through UCX here (libtroupe_ucx.so, shared memory)");
    return taken;
  }

  std::optional<copied_shares> copies(const link& by, std::size_t bytes) override {
    auto& n = nodes(by);
    const auto& data = filled(n, bytes);
    const auto here = bytes_copied().value_or(0), there = n.copied_there();
    moved(n, data);
    const auto share = [&](std::uint64_t copied) { return static_cast<double>(copied) / static_cast<double>(bytes); };
    return copied_shares{share(bytes_copied().value_or(0) - here), share(n.copied_there() - there)};
  }

  std::vector<double> round_trips_beside(const link& by, std::size_t bytes) override {
    auto& n = nodes(by);
    const auto& data = filled(n, bytes);
    std::vector<double> taken;
    moved(n, data, [&](const troupe::future<void>& arrives) {
      while (!arrives.is_ready()) {
        const auto begin = clock::now();
        n.owner().spawn(n.there(), nothing).get();
        taken.push_back(since(begin));
      }
    });
    return taken;
  }

  std::optional<double> steps(const link& by, const crowd& crowd, const step_shape& shape, bool recorded) override {
    if (const auto needed = crowd.nodes * crowd.cores; cores().size() < needed)
      throw missing(std::to_string(needed) + " cores");
    auto& n = nodes(by, true, crowd);
    const bound_to mine(n.cores_of(0));
    const steps_over_nodes work(n, crowd.nodes, shape);
    if (recorded) return work.recorded();
    const auto before = n.ran_there();
    const double spent = work.spawned();
    expect(n, before, work.tasks_there());
    return spent;
  }

  std::optional<two_times> cholesky(const link& by, cholesky_problem& problem, std::size_t tile) override {
    if (cores().size() < 2) throw missing("two cores");
    return shared(by, [&](troupe::runtime& owner, const processor_time& cpu) {
      return factor_on(owner, nodes_->matrix, problem, tile, cpu);
    });
  }

  std::optional<two_times> filter(const link& by, filter_work& work) override {
    if (cores().size() < 2) throw missing("two cores");
    return shared(by, [&](troupe::runtime& owner, const processor_time& cpu) -> std::optional<two_times> {
      return filter_on(owner, work, cpu);
    });
  }

 private:
  some_nodes& nodes(const link& by, bool bound = false, const crowd& all = {}) {
    if (!nodes_ || !nodes_->is(by, bound, all)) {
      nodes_.reset();
      nodes_.emplace(by, bound, all);
    }
    return *nodes_;
  }

  /// Work of both nodes, each on a core, and what each had of it.
  template <class Work>
  std::optional<two_times> shared(const link& by, Work&& work) {
    auto& n = nodes(by, true);
    const bound_to mine({cores().at(0)});
    const auto count = [&](const troupe::scope& where) {
      std::pair<std::uint64_t, std::uint64_t> all;
      for (const auto& e : n.owner().executors(where)) all.first += e.tasks, all.second += e.bytes_moved;
      return all;
    };
    const auto here = count(troupe::scope::here()), there = count(n.there().where);
    std::optional<two_times> taken = work(n.owner(), [&] { return processor_time_of(0) + n.cpu_there(); });
    if (!taken) return {};
    const auto now_here = count(troupe::scope::here()), now_there = count(n.there().where);
    const auto by_it = static_cast<double>(now_there.first - there.first),
               by_owner = static_cast<double>(now_here.first - here.first);
    taken->there = 100 * by_it / (by_it + by_owner);
    taken->bytes_moved = static_cast<double>(now_there.second - there.second);
    if (std::min(*taken->there, 100 - *taken->there) < least_share) {
      std::ostringstream text;
      text.precision(3);
      text << "not shared: the other node ran " << *taken->there << " % of the tasks, and each is to run at least "
           << least_share << " %; " << taken->done / 1e6 << " ms until all was done";
      throw not_shared(text.str());
    }
    return taken;
  }

  static void expect(some_nodes& n, std::uint64_t before, std::size_t count) {
    if (const auto ran = n.ran_there() - before; ran != count)
      throw wrong_answer(std::to_string(ran) + " of " + std::to_string(count) + " tasks ran on the other node");
  }

  /// Numbers that nothing compresses. They have been there once, so that memory is.
  static const numbers& filled(some_nodes& n, std::size_t bytes) {
    auto& data = n.moved[bytes];
    if (!data) {
      const auto count = static_cast<troupe::index_t>(bytes / sizeof(std::uint64_t));
      data = n.owner().array<std::uint64_t, 1>({count}, troupe::tiles(count));
      auto all = data.write();
      for (troupe::index_t i = 0; i < count; ++i) all(i) = test::hashed(1, static_cast<std::uint64_t>(i));
      all = {};
      moved(n, data);
    }
    return data;
  }

  /// Moves what this side has changed, and has it looked through there; nanoseconds.
  template <class Meanwhile>
  static double moved(some_nodes& n, const numbers& data, Meanwhile&& meanwhile) {
    std::uint64_t expected = 0;
    {
      const auto all = data.update();
      for (troupe::index_t i = 0; i < data.size(0); i += sampled_every) expected += ++all(i);
    }
    const auto sum = n.owner().filled<std::uint64_t>({1}, troupe::tiles(1), 0);
    const auto begin = clock::now();
    const auto arrives = n.owner().spawn(n.there(), look_through, troupe::read(data), troupe::write(sum));
    meanwhile(arrives);
    arrives.get();
    const auto spent = since(begin);
    if (sum.read()(0) != expected) throw wrong_answer("what has been moved is not what was there");
    return spent;
  }
  static double moved(some_nodes& n, const numbers& data) {
    return moved(n, data, [](const auto&) {});
  }

  std::optional<some_nodes> nodes_;
};

/// The same work in one process with both cores.
class one_node final : public node_contender {
 public:
  std::string name() const override { return "one_node"; }
  std::string description() const override { return "troupe in this process alone, a thread on each of two cores"; }
  void stop() override {
    matrix_ = {};
    rt_.reset();
  }

  std::optional<two_times> cholesky(const link&, cholesky_problem& problem, std::size_t tile) override {
    const bound_to mine(two_cores());
    return factor_on(runtime(), matrix_, problem, tile, cpu);
  }
  std::optional<two_times> filter(const link&, filter_work& work) override {
    const bound_to mine(two_cores());
    return filter_on(runtime(), work, cpu);
  }

 private:
  static double cpu() { return processor_time_of(0); }
  static std::vector<int> two_cores() {
    if (cores().size() < 2) throw missing("two cores");
    return {cores().at(0), cores().at(1)};
  }
  troupe::runtime& runtime() {
    if (!rt_) rt_.emplace(troupe::options{.threads = 2, .bind_threads = true});  // as the two nodes are
    return *rt_;
  }
  std::optional<troupe::runtime> rt_;
  troupe::array<double, 2> matrix_;
};

}  // namespace

std::unique_ptr<contender> make_troupe_nodes() { return std::make_unique<troupe_nodes>(); }
std::unique_ptr<contender> make_one_node() { return std::make_unique<one_node>(); }

}  // namespace bench
