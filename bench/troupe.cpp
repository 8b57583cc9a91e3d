// Troupe as a contender: its public API with default options, as any program would use it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Handles are one-tile arrays over memory of the benchmark, as StarPU registers memory of its caller. Idle workers
// sleep, so there is nothing to pause between turns.
#include "bench/loops/troupe_loops.hpp"
#include "bench/streams/troupe_streams.hpp"
#include "bench/taskbench/steps.hpp"
#include "cholesky.hpp"
#include "troupe_devices.hpp"
#include "troupe_gemm.hpp"
#include "workloads.hpp"

#include <troupe/troupe.hpp>

#include <deque>
#include <latch>
#include <span>
#include <thread>

namespace bench {

namespace {

using byte_array = troupe::array<char, 1>;

/// n arrays of one byte each.
class handles {
 public:
  handles(troupe::runtime& rt, std::size_t n) : bytes_(n) {
    arrays_.reserve(n);
    for (auto& byte : bytes_) arrays_.push_back(rt.borrow<char>(std::span(&byte, 1), {1}, troupe::tiles(1)));
  }
  const byte_array& operator[](std::size_t i) const { return arrays_[i]; }

 private:
  std::vector<char> bytes_;
  std::vector<byte_array> arrays_;  // gone before the bytes
};

template <class Submitter>
void submit_dag(Submitter& to, const dag& graph, const handles& h) {
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    const auto& task = graph.tasks[i];
    to.spawn([&graph, i] { run_dag_task(graph, i); }, troupe::read(h[task.read_a]), troupe::read(h[task.read_b]),
             troupe::update(h[task.update]));
  }
}

/// The outputs of graphs in steps as one-tile arrays, and for each set of inputs the list of them.
class step_arrays {
 public:
  step_arrays(troupe::runtime& rt, step_problem& p) : problem_(p) {
    for (std::size_t i = 0; i < p.outputs(); ++i) {
      const auto bytes = p.output(i);
      const auto size = static_cast<troupe::index_t>(bytes.size());
      outputs_.push_back(rt.borrow<std::uint64_t>(bytes, {size}, troupe::tiles(size)));
    }
    const auto& s = p.shape();
    for (std::size_t graph = 0; graph < s.graphs; ++graph)
      for (std::size_t step = 0; step < period(); ++step)
        for (std::size_t at = 0; at < s.width; ++at) {
          std::vector<troupe::array<std::uint64_t, 1>> list;
          for (const auto other : p.inputs(step + period(), at))
            list.push_back(outputs_[p.output_of(graph, step + period() - 1, other)]);
          inputs_.push_back(std::move(list));
        }
  }

  template <class Submitter>
  void submit(Submitter& to) {
    const auto& s = problem_.shape();
    step_problem* const p = &problem_;
    for (std::size_t task = 0; task < p->tasks(); ++task) {
      const auto [graph, step, at] = p->point_of(task);
      const auto& out = outputs_[p->output_of(graph, step, at)];
      if (step == 0)
        to.spawn([p, task] { p->run(task); }, troupe::write(out));
      else
        to.spawn([p, task] { p->run(task); },
                 troupe::read_all(inputs_[(graph * period() + step % period()) * s.width + at]), troupe::write(out));
    }
  }

 private:
  // Steps after which inputs repeat: the sets, and two buffers.
  std::size_t period() const { return 2 * problem_.sets(); }

  step_problem& problem_;
  std::vector<troupe::array<std::uint64_t, 1>> outputs_;
  std::vector<std::vector<troupe::array<std::uint64_t, 1>>> inputs_;
};

/// Two images that a stencil reads and writes in turn.
class images {
 public:
  images(troupe::runtime& rt, std::size_t side)
      : length_(static_cast<troupe::index_t>(side) * tile),
        first_(rt.filled<float>({length_, length_}, troupe::tiles(tile, tile), 0.0F)),
        second_(rt.filled<float>({length_, length_}, troupe::tiles(tile, tile), 0.0F)) {}

  template <class Submitter>
  void submit(Submitter& to, int rounds) const {
    for (int round = 0; round < rounds; ++round) {
      const auto& from = round % 2 == 0 ? first_ : second_;
      const auto& into = round % 2 == 0 ? second_ : first_;
      to.for_each(
          troupe::grid(length_, length_), [] { tally::add(); }, troupe::read(from, troupe::window(1, 1).clamp()),
          troupe::write(into));
    }
  }

  /// A task that keeps all others from the images until `held` opens.
  troupe::future<void> hold(troupe::runtime& rt, gate& held) const {
    return rt.spawn([&held] { held.wait(); }, troupe::update(first_), troupe::update(second_));
  }

 private:
  static constexpr troupe::index_t tile = 64;
  troupe::index_t length_;
  troupe::array<float, 2> first_;
  troupe::array<float, 2> second_;
};

class troupe_runtime final : public contender {
 public:
  std::string name() const override { return "troupe"; }
  std::string description() const override { return "troupe, default options but for the number of threads"; }

  void start(unsigned threads, purpose) override { rt_.emplace(troupe::options{.threads = static_cast<int>(threads)}); }
  void stop() override { rt_.reset(); }

  std::optional<cost> independent(std::size_t n) override {
    const handles h(*rt_, n);
    const executed proof;
    const meter clock;
    for (std::size_t i = 0; i < n; ++i) rt_->spawn([] { tally::add(); }, troupe::update(h[i]));
    rt_->wait_all();
    const auto spent = clock.stop();
    proof.check(n);
    return spent;
  }

  std::optional<cost> chain(std::size_t n) override {
    const handles h(*rt_, 1);
    const executed proof;
    const meter clock;
    for (std::size_t i = 0; i < n; ++i) rt_->spawn([] { tally::add(); }, troupe::update(h[0]));
    rt_->wait_all();
    const auto spent = clock.stop();
    proof.check(n);
    return spent;
  }

  std::optional<cost> submitting(unsigned threads, std::size_t n) override {
    constexpr std::size_t handles_of_each = 64;
    std::deque<handles> of_each;
    for (unsigned i = 0; i < threads; ++i) of_each.emplace_back(*rt_, handles_of_each);
    const executed proof;
    std::latch all_there(threads + 1);
    std::vector<std::jthread> submitters;
    for (const handles& h : of_each)
      submitters.emplace_back([this, &h, &all_there, n] {
        all_there.arrive_and_wait();
        for (std::size_t i = 0; i < n; ++i) rt_->spawn([] { tally::add(); }, troupe::update(h[i % handles_of_each]));
      });
    all_there.arrive_and_wait();
    const meter clock;
    submitters.clear();
    rt_->wait_all();
    const auto spent = clock.stop();
    proof.check(threads * n);
    return spent;
  }

  std::optional<cost> random_dag(const dag& graph) override {
    const handles h(*rt_, dag_handles);
    const executed proof;
    const meter clock;
    submit_dag(*rt_, graph, h);
    rt_->wait_all();
    const auto spent = clock.stop();
    proof.check(graph.tasks.size());
    return spent;
  }

  std::optional<cost> spinning(std::size_t n, std::chrono::nanoseconds body) override {
    const auto ticks = ticks_in(body);
    const executed proof;
    const meter clock;
    for (std::size_t i = 0; i < n; ++i)
      rt_->spawn([ticks] {
        spin(ticks);
        tally::add();
      });
    rt_->wait_all();
    const auto spent = clock.stop();
    proof.check(n);
    return spent;
  }

  std::optional<double> round_trip(std::size_t samples, std::chrono::microseconds idle) override {
    const executed proof;
    const auto p50 = median_round_trip(samples, idle, [this] { rt_->spawn([] { tally::add(); }).get(); });
    proof.check(samples);
    return p50;
  }

  std::optional<double> pending_bytes(std::size_t n) override {
    const handles h(*rt_, 1);
    const executed proof;
    gate held;
    rt_->spawn([&held] { held.wait(); }, troupe::update(h[0]));
    const auto before = memory_use::now();
    for (std::size_t i = 0; i < n; ++i) rt_->spawn([] { tally::add(); }, troupe::update(h[0]));
    const auto grown = memory_use::now().grown_since(before);
    held.open();
    rt_->wait_all();
    proof.check(n);
    return grown / static_cast<double>(n);
  }

  std::optional<cost> replay(const dag& graph, int rounds) override {
    const handles h(*rt_, dag_handles);
    const auto recorded = rt_->record([&](troupe::recorder& r) { submit_dag(r, graph, h); });
    rt_->run(recorded).get();
    const executed proof;
    const meter clock;
    for (int round = 1; round < rounds; ++round) rt_->run(recorded);
    rt_->run(recorded).get();  // runs of one graph are ordered: the last one ends last
    const auto spent = clock.stop();
    proof.check(graph.tasks.size() * static_cast<std::size_t>(rounds));
    return spent;
  }

#if defined(TROUPE_BENCH_HAVE_BLAS)
  std::optional<cost> cholesky(cholesky_problem& problem, std::size_t rows) override {
    tiled_matrix matrix(problem.n, rows);
    matrix.load(problem);
    const auto tiles = matrix.tiles();
    const auto tile_size = static_cast<troupe::index_t>(matrix.tile_size());
    const auto size = tiles * tiles * matrix.tile_size();
    const auto whole = rt_->borrow<double>(std::span(matrix(0, 0), size), {static_cast<troupe::index_t>(size)},
                                           troupe::tiles(tile_size));
    std::vector<troupe::array<double, 1>> handles;
    handles.reserve(tiles * tiles);
    for (troupe::index_t k = 0; k < static_cast<troupe::index_t>(tiles * tiles); ++k)
      handles.push_back(whole.sub({{k * tile_size}, {(k + 1) * tile_size}}));
    const auto at = [&](std::size_t i, std::size_t j) -> const troupe::array<double, 1>& {
      return handles[i + j * tiles];
    };
    using out = troupe::view<double, 1>;
    using in = troupe::view<const double, 1>;
    const auto tasks = cholesky_tasks(tiles);
    const meter clock;
    for (const auto& task : tasks) {
      const auto& target = at(task.out_i, task.out_j);
      const auto kind = task.kind;
      if (kind == step::potrf)
        rt_->spawn([rows](out c) { run_step(step::potrf, rows, c.data(), nullptr, nullptr); }, troupe::update(target));
      else if (kind == step::gemm)
        rt_->spawn([rows](in a, in b, out c) { run_step(step::gemm, rows, c.data(), a.data(), b.data()); },
                   troupe::read(at(task.a_i, task.a_j)), troupe::read(at(task.b_i, task.b_j)), troupe::update(target));
      else
        rt_->spawn([rows, kind](in a, out c) { run_step(kind, rows, c.data(), a.data(), nullptr); },
                   troupe::read(at(task.a_i, task.a_j)), troupe::update(target));
    }
    rt_->wait_all();
    const auto spent = clock.stop();
    matrix.store(problem);
    return spent;
  }
#endif

  std::optional<cost> stencil(std::size_t side, int rounds) override {
    const images pair(*rt_, side);
    pair.submit(*rt_, 2);  // both written once
    rt_->wait_all();
    const executed proof;
    const meter clock;
    pair.submit(*rt_, rounds);
    rt_->wait_all();
    const auto spent = clock.stop();
    proof.check(side * side * static_cast<std::size_t>(rounds));
    return spent;
  }

  /// Behind a task that holds both images, so that everything is planned and nothing runs.
  std::optional<cost> stencil_planning(std::size_t side, int rounds) override {
    const images pair(*rt_, side);
    pair.submit(*rt_, 2);
    rt_->wait_all();
    gate held;
    const auto holder = pair.hold(*rt_, held);
    const auto spawned = rt_->report().spawned;
    const executed proof;
    const meter clock;
    pair.submit(*rt_, rounds);
    const auto planned = rt_->report().spawned - spawned;  // the report first orders all that was submitted
    const auto spent = clock.stop();
    held.open();
    rt_->wait_all();
    proof.check(side * side * static_cast<std::size_t>(rounds));
    if (planned < side * side * static_cast<std::size_t>(rounds))
      throw wrong_answer("planned " + std::to_string(planned) + " tasks of a stencil");
    return spent;
  }

  std::optional<cost> steps(step_problem& problem, bool recorded) override {
    step_arrays arrays(*rt_, problem);
    if (!recorded) {
      const meter clock;
      arrays.submit(*rt_);
      rt_->wait_all();
      return clock.stop();
    }
    const auto graph = rt_->record([&](troupe::recorder& r) { arrays.submit(r); });
    rt_->run(graph).get();
    problem.reset();
    const meter clock;
    rt_->run(graph).get();
    return clock.stop();
  }

  std::optional<time_spent> spent() override {
    const troupe::runtime_report r = rt_->report();
    time_spent all{.deciding = static_cast<double>(r.scheduling_time.count())};
    for (const troupe::executor_report& e : r.executors) all.in_bodies += static_cast<double>(e.busy.count());
    return all;
  }

  std::optional<cost> life(life_problem& problem, std::size_t rows, std::size_t columns) override {
    return life_on(*rt_, problem, rows, columns);
  }
  std::optional<cost> page_rank(rank_problem& problem, std::size_t chunk, std::size_t tile) override {
    return page_rank_on(*rt_, problem, chunk, tile);
  }

  std::optional<cost> stream(stream_problem& problem) override { return stream_on(*rt_, problem); }

  bool start_on(const std::string& device, unsigned threads, std::uint64_t memory_bytes) override {
    rt_.emplace(troupe::options{.threads = static_cast<int>(threads),
                                .devices = {{.name = device, .memory_bytes = memory_bytes}},
                                .cost_cache = "none"});
    device_ = device;
    return true;
  }
  std::optional<cost> device_launches(std::size_t n) override { return launches_on(*rt_, device_, n); }
  std::optional<double> device_round_trip(std::size_t samples) override {
    return round_trip_on(*rt_, device_, samples);
  }
  std::optional<cost> device_chain(std::size_t n) override { return chain_on(*rt_, device_, n); }
  std::optional<cost> device_flow(flow_problem& problem) override { return flow_on(*rt_, device_, problem); }
  std::optional<stream_to_hand_cost> device_stream(std::size_t batches) override {
    return stream_batches_on(*rt_, device_, batches);
  }
  std::optional<double> device_traffic(std::size_t calls) override { return traffic_on(*rt_, device_, calls); }
  std::optional<filter_cost> filter(filter_problem& problem, filter_scope where, int images) override {
    return filter_on(*rt_, device_, problem, where, images);
  }
  std::optional<double> device_gemm(const gemm_problem& problem) override { return gemm_on(*rt_, device_, problem); }
  std::optional<transfer_cost> device_transfer(std::size_t bytes) override { return transfer_on(*rt_, device_, bytes); }
  std::optional<out_of_core_cost> out_of_core(const out_of_core_problem& problem) override {
    return out_of_core_on(*rt_, device_, problem);
  }

 private:
  std::optional<troupe::runtime> rt_;
  std::string device_;
};

}  // namespace

std::unique_ptr<contender> make_troupe() { return std::make_unique<troupe_runtime>(); }

}  // namespace bench
