// OpenMP tasks (GCC's libgomp) as a contender: one `single` thread submits, the team runs.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// The team exists before the clock starts (an empty parallel region) and is handed back with omp_pause_resource_all
// between turns: libgomp's idle threads spin for milliseconds, and OMP_WAIT_POLICY=passive would make it slower
// instead. libgomp runs a task at once on the submitter when more than 64 per thread are queued; its figures for empty
// independent tasks are therefore mostly not queueing costs.
#include "../cholesky.hpp"
#include "../loops/problem.hpp"
#include "../taskbench/steps.hpp"
#include "../workloads.hpp"

#include <string>

#include <omp.h>

namespace bench {

namespace {

class openmp final : public contender {
 public:
  std::string name() const override { return "openmp"; }
  std::string description() const override {
    return "OpenMP tasks with depend clauses, libgomp " + std::to_string(__GNUC__) + "." +
           std::to_string(__GNUC_MINOR__) + ", default wait policy, team shut between turns";
  }

  void start(unsigned threads, purpose) override {
    threads_ = static_cast<int>(threads);
    resume();
  }
  void stop() override { pause(); }
  void pause() override { omp_pause_resource_all(omp_pause_hard); }
  void resume() override {
    const int threads = threads_;
#pragma omp parallel num_threads(threads)
    {
      asm volatile("" ::: "memory");  // GCC removes an empty region, and with it the team's start
#pragma omp barrier
    }
  }

  std::optional<cost> independent(std::size_t n) override {
    std::vector<char> handles(n);
    auto* const h = handles.data();
    return submit(n, [=] {
      for (std::size_t i = 0; i < n; ++i) {
#pragma omp task depend(inout : h[i])
        tally::add();
      }
    });
  }

  std::optional<cost> chain(std::size_t n) override {
    char handle = 0;
    auto* const h = &handle;
    return submit(n, [=] {
      for (std::size_t i = 0; i < n; ++i) {
#pragma omp task depend(inout : h[0])
        tally::add();
      }
    });
  }

  std::optional<cost> submitting(unsigned submitters, std::size_t n) override {
    constexpr std::size_t handles_of_each = 64;
    const int threads = threads_;
    if (submitters > static_cast<unsigned>(threads)) return {};  // a thread that submits is one of the team
    std::vector<char> handles(submitters * handles_of_each);
    auto* const h = handles.data();
    const executed proof;
    const meter clock;
#pragma omp parallel num_threads(threads)
    if (const auto self = static_cast<unsigned>(omp_get_thread_num()); self < submitters)
      for (std::size_t i = 0; i < n; ++i) {
#pragma omp task depend(inout : h[self * handles_of_each + i % handles_of_each])
        tally::add();
      }
    const auto spent = clock.stop();
    proof.check(submitters * n);
    return spent;
  }

  std::optional<cost> random_dag(const dag& graph) override {
    const auto n = graph.tasks.size();
    // Quadratic: 1.2 us per task at 2,000 tasks, 39 us at 20,000, and hundreds of megabytes beyond.
    if (n > 10'000) return {};
    std::array<char, dag_handles> handles{};
    auto* const h = handles.data();
    const auto* const g = &graph;
    return submit(n, [=] {
      for (std::size_t i = 0; i < n; ++i) {
        const auto task = g->tasks[i];
#pragma omp task depend(in : h[task.read_a], h[task.read_b]) depend(inout : h[task.update]) firstprivate(g, i)
        run_dag_task(*g, i);
      }
    });
  }

  std::optional<cost> spinning(std::size_t n, std::chrono::nanoseconds body) override {
    const auto ticks = ticks_in(body);
    return submit(n, [=] {
      for (std::size_t i = 0; i < n; ++i) {
#pragma omp task firstprivate(ticks)
        {
          spin(ticks);
          tally::add();
        }
      }
    });
  }

  std::optional<double> round_trip(std::size_t samples, std::chrono::microseconds idle) override {
    const executed proof;
    double p50 = 0;
    const int threads = threads_;
#pragma omp parallel num_threads(threads)
#pragma omp single
    p50 = median_round_trip(samples, idle, [] {
#pragma omp task
      tally::add();
#pragma omp taskwait
    });
    proof.check(samples);
    return p50;
  }

  // No pending_bytes: past 64 tasks per thread libgomp makes the submitter wait for the task's inputs instead of
  // queueing it, so 50,000 pending tasks cannot exist. No replay: GCC 12 has no taskgraph directive.

#if defined(TROUPE_BENCH_HAVE_BLAS)
  std::optional<cost> cholesky(cholesky_problem& problem, std::size_t rows) override {
    tiled_matrix matrix(problem.n, rows);
    matrix.load(problem);
    const auto tasks = cholesky_tasks(matrix.tiles());
    cost spent;
    const int threads = threads_;
#pragma omp parallel num_threads(threads)
#pragma omp single
    {
      const meter clock;
      for (const auto& task : tasks) {
        double* const out = matrix(task.out_i, task.out_j);
        double* const a = matrix(task.a_i, task.a_j);
        double* const b = matrix(task.b_i, task.b_j);
        const auto kind = task.kind;
        switch (kind) {
          case step::potrf:
#pragma omp task depend(inout : out[0]) firstprivate(out, rows)
            run_step(step::potrf, rows, out, nullptr, nullptr);
            break;
          case step::gemm:
#pragma omp task depend(in : a[0], b[0]) depend(inout : out[0]) firstprivate(out, a, b, rows)
            run_step(step::gemm, rows, out, a, b);
            break;
          default:
#pragma omp task depend(in : a[0]) depend(inout : out[0]) firstprivate(out, a, rows, kind)
            run_step(kind, rows, out, a, nullptr);
        }
      }
#pragma omp taskwait
      spent = clock.stop();
    }
    matrix.store(problem);
    return spent;
  }
#endif

  std::optional<cost> steps(step_problem& problem, bool recorded) override {
    if (recorded) return {};
    std::vector<std::uint64_t*> outputs(problem.outputs());
    for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i] = problem.output(i).data();
    auto* const p = &problem;
    auto* const o = outputs.data();
    return submit(problem.tasks(), [=] {
      for (std::size_t task = 0; task < p->tasks(); ++task) {
        const auto [graph, step, at] = p->point_of(task);
        const auto in = p->inputs(step, at);
        const auto n = in.size();
        const auto* const others = in.data();
        const auto g = graph, before = step - 1;
        [[maybe_unused]] std::uint64_t* const out = o[p->output_of(graph, step, at)];
#pragma omp task depend(iterator(std::size_t k = 0 : n), in : o[p->output_of(g, before, others[k])][0]) \
    depend(out : out[0]) firstprivate(p, task)
        p->run(task);
      }
    });
  }

  // Plain loops, no tasks.
  std::optional<cost> life(life_problem& problem, std::size_t, std::size_t) override {
    const std::size_t n = problem.side;
    const int threads = threads_;
    life_problem::cells now = problem.start(), next(now.size());
    const auto step = [&] {
      const std::uint8_t* const from = now.data();
      std::uint8_t* const to = next.data();
#pragma omp parallel for num_threads(threads) schedule(static)
      for (std::size_t y = 0; y < n; ++y)
        life_problem::next_row(from + (y + n - 1) % n * n, from + y * n, from + (y + 1) % n * n, to + y * n, n);
      now.swap(next);
    };
    step();
    step();
    now = problem.start();
    const meter clock;
    for (int s = 0; s < problem.steps; ++s) step();
    const cost spent = clock.stop();
    problem.check([&](std::size_t y, std::size_t x) { return now[y * n + x]; });
    return spent;
  }
  std::optional<cost> page_rank(rank_problem& problem, std::size_t, std::size_t) override {
    const int threads = threads_;
    std::vector<float> now(problem.nodes, problem.at_first()), next(problem.nodes);
    const auto step = [&] {
      const auto* const p = &problem;
      const float* const rank = now.data();
      float* const result = next.data();
#pragma omp parallel for num_threads(threads) schedule(static)
      for (std::size_t i = 0; i < p->nodes; ++i) {
        float sum = 0;
        for (std::uint32_t k = p->first[i]; k < p->first[i + 1]; ++k) sum += rank[p->from[k]] * p->share[p->from[k]];
        result[i] = p->new_rank(sum);
      }
      now.swap(next);
    };
    step();
    now.assign(problem.nodes, problem.at_first());
    const meter clock;
    for (int s = 0; s < problem.steps; ++s) step();
    const cost spent = clock.stop();
    problem.check([&](std::size_t i) { return now[i]; });
    return spent;
  }

 private:
  /// Runs `tasks` (which creates n of them) on the submitting thread of a warm team and waits for all.
  template <class Tasks>
  cost submit(std::size_t n, Tasks tasks) {
    const executed proof;
    cost spent;
    const int threads = threads_;
#pragma omp parallel num_threads(threads)
#pragma omp single
    {
      const meter clock;
      tasks();
#pragma omp taskwait
      spent = clock.stop();
    }
    proof.check(n);
    return spent;
  }

  int threads_ = 1;
};

}  // namespace

std::unique_ptr<contender> make_openmp() { return std::make_unique<openmp>(); }

}  // namespace bench
