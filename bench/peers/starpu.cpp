// StarPU 1.3 as a contender, set up as its handbook advises for small tasks on cores only.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Scheduler lws (the default, best for small tasks) and prio for Cholesky; starpu_task_create + starpu_task_submit
// rather than the varargs starpu_task_insert (50 to 100 ns dearer); void handles, which carry no coherency data;
// no tracing, no performance models, no signal handlers. Its workers poll, so they are paused between turns.
#include "../cholesky.hpp"
#include "../taskbench/steps.hpp"
#include "../workloads.hpp"

#include <cstdlib>
#include <fstream>
#include <new>
#include <string>

#include <starpu.h>

namespace bench {

namespace {

struct dag_argument {
  const dag* graph;
  std::size_t index;
};

struct step_argument {
  step kind;
  std::size_t rows;
};

void empty_body(void**, void*) { tally::add(); }
void spin_body(void**, void* ticks) {
  spin(*static_cast<std::uint64_t*>(ticks));
  tally::add();
}
void dag_body(void**, void* argument) {
  const auto& task = *static_cast<dag_argument*>(argument);
  run_dag_task(*task.graph, task.index);
}
void gate_body(void**, void* held) { static_cast<gate*>(held)->wait(); }

struct point_argument {
  step_problem* problem;
  std::size_t task;
};
void point_body(void**, void* argument) {
  const auto& one = *static_cast<point_argument*>(argument);
  one.problem->run(one.task);
}

#if defined(TROUPE_BENCH_HAVE_BLAS)
void step_body(void** buffers, void* argument) {
  const auto& task = *static_cast<step_argument*>(argument);
  const auto tile = [buffers](int k) { return reinterpret_cast<double*>(STARPU_MATRIX_GET_PTR(buffers[k])); };
  switch (task.kind) {
    case step::potrf:
      run_step(task.kind, task.rows, tile(0), nullptr, nullptr);
      break;
    case step::gemm:
      run_step(task.kind, task.rows, tile(2), tile(0), tile(1));
      break;
    default:
      run_step(task.kind, task.rows, tile(1), tile(0), nullptr);
  }
}
#endif

starpu_codelet make_codelet(starpu_cpu_func_t body, std::initializer_list<starpu_data_access_mode> modes) {
  starpu_codelet codelet;
  starpu_codelet_init(&codelet);
  codelet.where = STARPU_CPU;
  codelet.cpu_funcs[0] = body;
  codelet.nbuffers = static_cast<int>(modes.size());
  int k = 0;
  for (const auto mode : modes) codelet.modes[k++] = mode;
  return codelet;
}

// Tasks of the codelet say how many handles they have.
starpu_codelet make_variable_codelet(starpu_cpu_func_t body) {
  starpu_codelet codelet = make_codelet(body, {});
  codelet.nbuffers = STARPU_VARIABLE_NBUFFERS;
  return codelet;
}

void require(int code, const char* call) {
  if (code != 0) throw wrong_answer(std::string(call) + " returned " + std::to_string(code));
}

class void_handles {
 public:
  explicit void_handles(std::size_t n) : handles_(n) {
    for (auto& handle : handles_) starpu_void_data_register(&handle);
  }
  ~void_handles() {
    for (auto handle : handles_) starpu_data_unregister(handle);
  }
  void_handles(const void_handles&) = delete;
  void_handles& operator=(const void_handles&) = delete;
  starpu_data_handle_t operator[](std::size_t i) const { return handles_[i]; }

 private:
  std::vector<starpu_data_handle_t> handles_;
};

void submit(starpu_codelet& codelet, void* argument, std::initializer_list<starpu_data_handle_t> handles,
            int priority = 0) {
  auto* task = starpu_task_create();
  task->cl = &codelet;
  task->cl_arg = argument;
  task->priority = priority;
  int k = 0;
  for (auto handle : handles) task->handles[k++] = handle;
  require(starpu_task_submit(task), "starpu_task_submit");
}

double available_bytes() {
  std::ifstream meminfo("/proc/meminfo");
  std::string key;
  double kilobytes = 0;
  for (std::string unit; meminfo >> key >> kilobytes; std::getline(meminfo, unit))
    if (key == "MemAvailable:") return kilobytes * 1024;
  return 0;
}

class starpu final : public contender {
 public:
  ~starpu() override { stop(); }

  std::string name() const override { return "starpu"; }
  std::string description() const override {
    int major = 0;
    int minor = 0;
    int release = 0;
    starpu_get_version(&major, &minor, &release);
    return "StarPU " + std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release) +
           ", scheduler lws (prio for Cholesky), create + submit, paused between turns";
  }

  void start(unsigned threads, purpose why) override {
    if (threads > STARPU_MAXCPUS)
      throw std::runtime_error("this StarPU was built for at most " + std::to_string(STARPU_MAXCPUS) + " cores");
    setenv("STARPU_SILENT", "1", 1);
    starpu_conf conf;
    require(starpu_conf_init(&conf), "starpu_conf_init");
    conf.precedence_over_environment_variables = 1;
    conf.sched_policy_name = why == purpose::linear_algebra ? "prio" : "lws";
    conf.ncpus = static_cast<int>(threads);
    conf.ncuda = conf.nopencl = conf.nmic = conf.nmpi_ms = 0;
    conf.catch_signals = 0;
    require(starpu_init(&conf), "starpu_init");
    running_ = true;
  }
  void stop() override {
    if (!running_) return;
    resume();  // shutting down paused workers never ends
    starpu_shutdown();
    running_ = false;
  }
  void pause() override {
    if (!paused_) starpu_pause();
    paused_ = true;
  }
  void resume() override {
    if (paused_) starpu_resume();
    paused_ = false;
  }

  std::optional<cost> independent(std::size_t n) override {
    // A handle takes 2 to 4 KB here; a run that pushes the machine into swap would measure the disk.
    if (static_cast<double>(n) * 8192 > available_bytes()) return {};
    const void_handles handles(n);
    const executed proof;
    const meter clock;
    for (std::size_t i = 0; i < n; ++i) submit(empty_, nullptr, {handles[i]});
    starpu_task_wait_for_all();
    const auto spent = clock.stop();
    proof.check(n);
    return spent;
  }

  std::optional<cost> chain(std::size_t n) override {
    const void_handles handles(1);
    const executed proof;
    const meter clock;
    for (std::size_t i = 0; i < n; ++i) submit(empty_, nullptr, {handles[0]});
    starpu_task_wait_for_all();
    const auto spent = clock.stop();
    proof.check(n);
    return spent;
  }

  std::optional<cost> random_dag(const dag& graph) override {
    const void_handles handles(dag_handles);
    std::vector<dag_argument> arguments;
    arguments.reserve(graph.tasks.size());
    for (std::size_t i = 0; i < graph.tasks.size(); ++i) arguments.push_back({&graph, i});
    const executed proof;
    const meter clock;
    for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
      const auto& task = graph.tasks[i];
      submit(dag_, &arguments[i], {handles[task.read_a], handles[task.read_b], handles[task.update]});
    }
    starpu_task_wait_for_all();
    const auto spent = clock.stop();
    proof.check(graph.tasks.size());
    return spent;
  }

  std::optional<cost> spinning(std::size_t n, std::chrono::nanoseconds body) override {
    auto ticks = ticks_in(body);
    const executed proof;
    const meter clock;
    for (std::size_t i = 0; i < n; ++i) submit(spin_, &ticks, {});
    starpu_task_wait_for_all();
    const auto spent = clock.stop();
    proof.check(n);
    return spent;
  }

  std::optional<double> round_trip(std::size_t samples, std::chrono::microseconds idle) override {
    const executed proof;
    const auto p50 = median_round_trip(samples, idle, [this] {
      auto* task = starpu_task_create();
      task->cl = &lone_;
      task->synchronous = 1;
      require(starpu_task_submit(task), "starpu_task_submit");
    });
    proof.check(samples);
    return p50;
  }

  std::optional<double> pending_bytes(std::size_t n) override {
    const void_handles handles(1);
    const executed proof;
    gate held;
    submit(gate_, &held, {handles[0]});
    const auto before = memory_use::now();
    for (std::size_t i = 0; i < n; ++i) submit(empty_, nullptr, {handles[0]});
    const auto grown = memory_use::now().grown_since(before);
    held.open();
    starpu_task_wait_for_all();
    proof.check(n);
    return grown / static_cast<double>(n);
  }

  std::optional<cost> steps(step_problem& problem, bool recorded) override {
    if (recorded) return {};
    const void_handles handles(problem.outputs());
    std::vector<point_argument> arguments(problem.tasks());
    for (std::size_t i = 0; i < arguments.size(); ++i) arguments[i] = {&problem, i};
    const executed proof;
    const meter clock;
    for (auto& argument : arguments) {
      const auto [graph, step, at] = problem.point_of(argument.task);
      const auto inputs = problem.inputs(step, at);
      auto* task = starpu_task_create();
      task->cl = &point_;
      task->cl_arg = &argument;
      task->nbuffers = static_cast<int>(inputs.size() + 1);
      // Freed with the task.
      task->dyn_handles =
          static_cast<starpu_data_handle_t*>(std::calloc(inputs.size() + 1, sizeof(starpu_data_handle_t)));
      task->dyn_modes =
          static_cast<starpu_data_access_mode*>(std::calloc(inputs.size() + 1, sizeof(starpu_data_access_mode)));
      if (!task->dyn_handles || !task->dyn_modes) throw std::bad_alloc();
      for (std::size_t k = 0; k < inputs.size(); ++k) {
        task->dyn_handles[k] = handles[problem.output_of(graph, step - 1, inputs[k])];
        task->dyn_modes[k] = STARPU_R;
      }
      task->dyn_handles[inputs.size()] = handles[problem.output_of(graph, step, at)];
      task->dyn_modes[inputs.size()] = STARPU_RW;
      require(starpu_task_submit(task), "starpu_task_submit");
    }
    starpu_task_wait_for_all();
    const auto spent = clock.stop();
    proof.check(problem.tasks());
    return spent;
  }

#if defined(TROUPE_BENCH_HAVE_BLAS)
  std::optional<cost> cholesky(cholesky_problem& problem, std::size_t rows) override {
    tiled_matrix matrix(problem.n, rows);
    matrix.load(problem);
    const auto tiles = matrix.tiles();
    const auto at = [tiles](std::size_t i, std::size_t j) { return i + j * tiles; };
    std::vector<starpu_data_handle_t> handles(tiles * tiles, nullptr);
    for (std::size_t j = 0; j < tiles; ++j)
      for (std::size_t i = j; i < tiles; ++i)
        starpu_matrix_data_register(&handles[at(i, j)], STARPU_MAIN_RAM, reinterpret_cast<uintptr_t>(matrix(i, j)),
                                    static_cast<std::uint32_t>(rows), static_cast<std::uint32_t>(rows),
                                    static_cast<std::uint32_t>(rows), sizeof(double));
    std::array<step_argument, 4> arguments;
    for (const auto kind : {step::potrf, step::trsm, step::syrk, step::gemm})
      arguments[static_cast<std::size_t>(kind)] = {kind, rows};
    const auto tasks = cholesky_tasks(tiles);
    const meter clock;
    for (const auto& task : tasks) {
      const auto out = handles[at(task.out_i, task.out_j)];
      void* argument = &arguments[static_cast<std::size_t>(task.kind)];
      if (task.kind == step::potrf)
        submit(potrf_, argument, {out}, task.priority);
      else if (task.kind == step::gemm)
        submit(gemm_, argument, {handles[at(task.a_i, task.a_j)], handles[at(task.b_i, task.b_j)], out}, task.priority);
      else
        submit(one_input_, argument, {handles[at(task.a_i, task.a_j)], out}, task.priority);
    }
    starpu_task_wait_for_all();
    const auto spent = clock.stop();
    for (auto handle : handles)
      if (handle != nullptr) starpu_data_unregister(handle);
    matrix.store(problem);
    return spent;
  }
#endif

 private:
  bool running_ = false;
  bool paused_ = false;
  starpu_codelet empty_ = make_codelet(empty_body, {STARPU_RW});
  starpu_codelet lone_ = make_codelet(empty_body, {});
  starpu_codelet spin_ = make_codelet(spin_body, {});
  starpu_codelet gate_ = make_codelet(gate_body, {STARPU_RW});
  starpu_codelet point_ = make_variable_codelet(point_body);
  starpu_codelet dag_ = make_codelet(dag_body, {STARPU_R, STARPU_R, STARPU_RW});
#if defined(TROUPE_BENCH_HAVE_BLAS)
  starpu_codelet potrf_ = make_codelet(step_body, {STARPU_RW});
  starpu_codelet one_input_ = make_codelet(step_body, {STARPU_R, STARPU_RW});
  starpu_codelet gemm_ = make_codelet(step_body, {STARPU_R, STARPU_R, STARPU_RW});
#endif
};

}  // namespace

std::unique_ptr<contender> make_starpu() { return std::make_unique<starpu>(); }

}  // namespace bench
