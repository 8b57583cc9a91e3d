// oneTBB as a contender: task_group where tasks are independent, a flow graph where they depend on each other.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// oneTBB derives no dependencies. The flow graph gets its edges ready-made (found outside the clock); building nodes
// and edges and running them is inside it, except in replay. Handles do not exist, so "one handle each" is a task
// without data. Its threads sleep by themselves when there is no work.
#include "../cholesky.hpp"
#include "../taskbench/steps.hpp"
#include "../workloads.hpp"
#include "tbb_streams.hpp"

#include <deque>
#include <string>
#include <type_traits>

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>
#include <oneapi/tbb/version.h>

namespace bench {

namespace {

namespace flow = oneapi::tbb::flow;
using node = flow::continue_node<flow::continue_msg>;

/// Made inside the arena that shall run it: a flow graph stays with the arena of its construction.
class built_graph {
 public:
  template <class Body>
  node& add(Body body) {
    return nodes_.emplace_back(graph_, [body](const flow::continue_msg&) { body(); });
  }
  node& operator[](std::size_t i) { return nodes_[i]; }
  void source(std::size_t i) { sources_.push_back(i); }
  void run() {
    for (const auto i : sources_) nodes_[i].try_put({});
    graph_.wait_for_all();
  }

 private:
  flow::graph graph_;
  std::deque<node> nodes_;
  std::vector<std::size_t> sources_;
};

void build(built_graph& built, const dag& graph, const dag_edges& edges) {
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    auto& task = built.add([&graph, i] { run_dag_task(graph, i); });
    const auto before = edges.of(i);
    if (before.empty()) built.source(i);
    for (const auto predecessor : before) flow::make_edge(built[predecessor], task);
  }
}

class tbb final : public contender {
 public:
  ~tbb() override { stop(); }

  std::string name() const override { return "tbb"; }
  std::string description() const override {
    return std::string("oneTBB ") + TBB_runtime_version() +
           ", task_group (independent) and flow graph with ready-made edges (dependent)";
  }

  void start(unsigned threads, purpose) override {
    handle_ = oneapi::tbb::task_scheduler_handle(oneapi::tbb::attach{});
    limit_.emplace(oneapi::tbb::global_control::max_allowed_parallelism, threads);
    arena_.emplace(static_cast<int>(threads));
    arena_->initialize();
    arena_->execute([threads] {
      oneapi::tbb::parallel_for(
          0U, threads * 4, [](unsigned) { spin(ticks_in(std::chrono::microseconds(1))); },
          oneapi::tbb::simple_partitioner{});
    });
  }
  void stop() override {
    if (!arena_) return;
    arena_.reset();
    limit_.reset();
    oneapi::tbb::finalize(handle_, std::nothrow);
  }

  std::optional<cost> independent(std::size_t n) override {
    return grouped(n, [] { tally::add(); });
  }

  std::optional<cost> chain(std::size_t n) override {
    return in_arena([n] {
      const executed proof;
      const auto built = std::make_unique<built_graph>();
      const meter clock;
      for (std::size_t i = 0; i < n; ++i) {
        auto& task = built->add([] { tally::add(); });
        if (i == 0)
          built->source(0);
        else
          flow::make_edge((*built)[i - 1], task);
      }
      built->run();
      const auto spent = clock.stop();
      proof.check(n);
      return spent;
    });
  }

  std::optional<cost> random_dag(const dag& graph) override {
    const auto edges = derive_edges(graph);
    return in_arena([&] {
      const executed proof;
      const auto built = std::make_unique<built_graph>();
      const meter clock;
      build(*built, graph, edges);
      built->run();
      const auto spent = clock.stop();
      proof.check(graph.tasks.size());
      return spent;
    });
  }

  std::optional<cost> replay(const dag& graph, int rounds) override {
    const auto edges = derive_edges(graph);
    return in_arena([&] {
      const auto built = std::make_unique<built_graph>();
      build(*built, graph, edges);
      built->run();
      const executed proof;
      const meter clock;
      for (int round = 0; round < rounds; ++round) built->run();
      const auto spent = clock.stop();
      proof.check(graph.tasks.size() * static_cast<std::size_t>(rounds));
      return spent;
    });
  }

  std::optional<cost> spinning(std::size_t n, std::chrono::nanoseconds body) override {
    return grouped(n, [ticks = ticks_in(body)] {
      spin(ticks);
      tally::add();
    });
  }

  std::optional<double> round_trip(std::size_t samples, std::chrono::microseconds idle) override {
    return in_arena([=] {
      const executed proof;
      oneapi::tbb::task_group group;
      const auto p50 = median_round_trip(samples, idle, [&group] {
        group.run([] { tally::add(); });
        group.wait();
      });
      proof.check(samples);
      return p50;
    });
  }

  std::optional<double> pending_bytes(std::size_t n) override {
    return in_arena([n] {
      const executed proof;
      built_graph built;
      gate held;
      built.add([&held] { held.wait(); });
      built[0].try_put({});  // runs on another thread: this one stays outside the graph until wait_for_all
      const auto before = memory_use::now();
      for (std::size_t i = 1; i <= n; ++i) flow::make_edge(built[i - 1], built.add([] { tally::add(); }));
      const auto grown = memory_use::now().grown_since(before);
      held.open();
      built.run();
      proof.check(n);
      return grown / static_cast<double>(n);
    });
  }

#if defined(TROUPE_BENCH_HAVE_BLAS)
  std::optional<cost> cholesky(cholesky_problem& problem, std::size_t rows) override {
    tiled_matrix matrix(problem.n, rows);
    matrix.load(problem);
    const auto tasks = cholesky_tasks(matrix.tiles());
    const auto before = predecessors(tasks, matrix.tiles());
    const auto spent = in_arena([&] {
      const auto built = std::make_unique<built_graph>();
      const meter clock;
      for (std::size_t i = 0; i < tasks.size(); ++i) {
        const auto& task = tasks[i];
        auto& here =
            built->add([kind = task.kind, rows, out = matrix(task.out_i, task.out_j), a = matrix(task.a_i, task.a_j),
                        b = matrix(task.b_i, task.b_j)] { run_step(kind, rows, out, a, b); });
        if (before[i].empty()) built->source(i);
        for (const auto predecessor : before[i]) flow::make_edge((*built)[predecessor], here);
      }
      built->run();
      return clock.stop();
    });
    matrix.store(problem);
    return spent;
  }
#endif

  std::optional<cost> steps(step_problem& problem, bool recorded) override {
    const auto edges = step_edges(problem);
    return in_arena([&] {
      const auto built = std::make_unique<built_graph>();
      const auto make = [&] {
        for (std::size_t i = 0; i < problem.tasks(); ++i) {
          auto& task = built->add([p = &problem, i] { p->run(i); });
          if (edges[i].empty()) built->source(i);
          for (const auto predecessor : edges[i]) flow::make_edge((*built)[predecessor], task);
        }
      };
      if (recorded) {
        make();
        built->run();
        problem.reset();
      }
      const meter clock;
      if (!recorded) make();
      built->run();
      return clock.stop();
    });
  }

  std::optional<cost> stream(stream_problem& problem) override {
    return in_arena([&] { return tbb_stream(problem); });
  }

 private:
  template <class F>
  std::invoke_result_t<F&> in_arena(F f) {
    return arena_->execute(f);
  }

  template <class Body>
  cost grouped(std::size_t n, Body body) {
    return in_arena([n, body] {
      const executed proof;
      oneapi::tbb::task_group group;
      const meter clock;
      for (std::size_t i = 0; i < n; ++i) group.run(body);
      group.wait();
      const auto spent = clock.stop();
      proof.check(n);
      return spent;
    });
  }

  /// In Cholesky a tile that is read is never written again, so the last writers are all there is.
  static std::vector<std::vector<std::uint32_t>> predecessors(const std::vector<cholesky_task>& tasks,
                                                              std::size_t tiles) {
    std::vector<std::int64_t> writer(tiles * tiles, -1);
    std::vector<std::vector<std::uint32_t>> before(tasks.size());
    for (std::uint32_t i = 0; i < tasks.size(); ++i) {
      const auto& task = tasks[i];
      const auto after = [&](std::size_t row, std::size_t column) {
        const auto last = writer[row + column * tiles];
        if (last >= 0) before[i].push_back(static_cast<std::uint32_t>(last));
      };
      after(task.out_i, task.out_j);
      if (task.kind != step::potrf) after(task.a_i, task.a_j);
      if (task.kind == step::gemm) after(task.b_i, task.b_j);
      writer[task.out_i + task.out_j * tiles] = i;
    }
    return before;
  }

  oneapi::tbb::task_scheduler_handle handle_;
  std::optional<oneapi::tbb::global_control> limit_;
  std::optional<oneapi::tbb::task_arena> arena_;
};

}  // namespace

std::unique_ptr<contender> make_tbb() { return std::make_unique<tbb>(); }

}  // namespace bench
