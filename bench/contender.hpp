// The one interface that troupe and every peer implement: start, stop, and one function per workload.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Ownership: the harness owns the contenders and calls them from one thread. A contender keeps its own clock (`meter`),
// because only it knows where its untimed preparation ends. A workload that a contender cannot express returns nothing;
// one that gives a wrong answer throws `wrong_answer`, so that a wrong peer never looks fast.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

namespace bench {

struct dag;
struct cholesky_problem;
struct flow_problem;
struct filter_problem;
struct gemm_problem;
struct out_of_core_problem;
class step_problem;
class stream_problem;
class life_problem;
class rank_problem;

/// The cost of the timed part of one workload, all of it together (not per task).
struct cost {
  double nanoseconds = 0;
  double allocations = 0;       ///< calls of malloc and its relatives; NaN where they cannot be counted
  double context_switches = 0;  ///< voluntary and involuntary, of the whole process
};

/// Runs from its construction to `stop()`.
class meter {
 public:
  meter();
  [[nodiscard]] cost stop() const;

 private:
  std::uint64_t allocations_;
  long switches_;
  std::chrono::steady_clock::time_point begin_;
};

/// A contender did not do the work it was timed for.
struct wrong_answer : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Thrown where there is nothing here to measure a workload with; the words say what.
struct missing : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The purpose that a contender is started for; it may choose its scheduler by this, as its documentation advises.
enum class purpose { small_tasks, linear_algebra };

/// Nanoseconds of all threads together: in decisions, which one of them makes at a time, and in bodies.
struct time_spent {
  double deciding = 0, in_bodies = 0;
};

/// Where the tiles of a filter may be computed.
enum class filter_scope { anywhere, cores, device };

struct filter_cost {
  double ms_per_image = 0;
  double percent_on_device = 0;  ///< of the tiles
};

/// The cost of moving one large piece of memory, each way.
struct transfer_cost {
  double in_ns = 0, out_ns = 0;
};

/// The same work by a stream and by a loop over tasks, in turn: medians.
struct stream_to_hand_cost {
  double stream_ns = 0, by_hand_ns = 0;
};

struct out_of_core_cost {
  double nanoseconds = 0;
  std::optional<double> bytes_moved{};  ///< over the link
  std::optional<double> block{};        ///< rows of what was found to be the best block
};

class contender {
 public:
  contender() = default;
  contender(const contender&) = delete;
  contender& operator=(const contender&) = delete;
  virtual ~contender() = default;

  [[nodiscard]] virtual std::string name() const = 0;
  /// Name, version and the settings it runs with, for the head of the report.
  [[nodiscard]] virtual std::string description() const = 0;

  /// Returns when the first task may be submitted and its threads exist.
  virtual void start(unsigned threads, purpose why) = 0;
  /// Returns when its threads are gone.
  virtual void stop() = 0;
  /// Between turns: its threads must use no processor time until `resume()`.
  virtual void pause() {}
  virtual void resume() {}

  /// n empty tasks, each with a handle of its own; submission to all done.
  virtual std::optional<cost> independent(std::size_t) { return {}; }
  /// n empty tasks that all update one handle.
  virtual std::optional<cost> chain(std::size_t) { return {}; }
  /// `threads` threads at once submit n empty tasks each, which update arrays of that thread alone; to all done.
  virtual std::optional<cost> submitting(unsigned /*threads*/, std::size_t /*n*/) { return {}; }
  /// Tasks of `dag`, two reads and one update each.
  virtual std::optional<cost> random_dag(const dag&) { return {}; }
  /// n tasks without data that each spin for `body`.
  virtual std::optional<cost> spinning(std::size_t, std::chrono::nanoseconds) { return {}; }
  /// Submit one empty task and wait for it, `samples` times, after `idle` of sleep each; the median in nanoseconds.
  virtual std::optional<double> round_trip(std::size_t, std::chrono::microseconds) { return {}; }
  /// Bytes per task while n tasks with one handle wait behind a blocked one.
  virtual std::optional<double> pending_bytes(std::size_t) { return {}; }
  /// `dag` recorded once and run once untimed, then run `rounds` times in order; only the latter are timed.
  virtual std::optional<cost> replay(const dag&, int) { return {}; }
  /// Factors `problem.matrix` into `problem.factor` by tiles of `tile` rows; layout conversion is not timed.
  virtual std::optional<cost> cholesky(cholesky_problem&, std::size_t) { return {}; }
  /// `rounds` calls of a 9-point stencil with an empty body over `side` x `side` tiles of 64 x 64, to all done.
  virtual std::optional<cost> stencil(std::size_t, int) { return {}; }
  /// The same calls planned (mapped to boxes, dependencies and copies found, writes recorded) but not run.
  virtual std::optional<cost> stencil_planning(std::size_t, int) { return {}; }
  /// All tasks of the graphs in steps, which check their inputs; with `recorded` the graphs are recorded, and run once,
  /// before the clock starts. The caller checks the problem afterwards.
  virtual std::optional<cost> steps(step_problem&, [[maybe_unused]] bool recorded) { return {}; }
  /// Time that its threads have spent since `start`, where it knows.
  virtual std::optional<time_spent> spent() { return {}; }
  /// All items of the stream through all its stages; making the stream is not timed, starting and ending it is. The
  /// caller checks the problem afterwards.
  virtual std::optional<cost> stream(stream_problem&) { return {}; }
  /// All steps of Life, in tiles of so many rows and columns where there are any. Checks the cells.
  virtual std::optional<cost> life(life_problem&, [[maybe_unused]] std::size_t rows,
                                   [[maybe_unused]] std::size_t columns) {
    return {};
  }
  /// All steps of PageRank, in chunks of so many nodes where there are any; the ranks lie in tiles of so many nodes.
  /// Checks them.
  virtual std::optional<cost> page_rank(rank_problem&, [[maybe_unused]] std::size_t chunk,
                                        [[maybe_unused]] std::size_t tile) {
    return {};
  }
  /// True if the steps run in another process, which checks them.
  [[nodiscard]] virtual bool checks_itself() const { return false; }

  /// Instead of `start`: with this accelerator beside the threads, and so many bytes of its memory (0: all). False
  /// where it has no way to it; `stop` ends it.
  virtual bool start_on(const std::string&, unsigned, std::uint64_t) { return false; }
  /// n tiny kernels, each on a resident array of its own; submission to all done.
  virtual std::optional<cost> device_launches(std::size_t) { return {}; }
  /// Submit one tiny kernel on a resident array and wait for it, `samples` times; the median in nanoseconds.
  virtual std::optional<double> device_round_trip(std::size_t) { return {}; }
  /// n small kernels that all update one resident array.
  virtual std::optional<cost> device_chain(std::size_t) { return {}; }
  /// Fresh host data through the device tile by tile; each result is looked at by the host.
  virtual std::optional<cost> device_flow(flow_problem&) { return {}; }
  /// n batches of resident arrays through one kernel, as a stream and by hand.
  virtual std::optional<stream_to_hand_cost> device_stream(std::size_t) { return {}; }
  /// Bytes copied per call of a kernel on resident tiles.
  virtual std::optional<double> device_traffic(std::size_t) { return {}; }
  /// Filters so many fresh images, one after the other, each from host memory to host memory.
  virtual std::optional<filter_cost> filter(filter_problem&, filter_scope, int) { return {}; }
  /// Products of matrices that are on the device, in tiles; nanoseconds.
  virtual std::optional<double> device_gemm(const gemm_problem&) { return {}; }
  /// So many bytes, from host memory to the device and back.
  virtual std::optional<transfer_cost> device_transfer(std::size_t) { return {}; }
  /// A product of matrices in host memory that are larger than the device's.
  virtual std::optional<out_of_core_cost> out_of_core(const out_of_core_problem&) { return {}; }
};

std::unique_ptr<contender> make_troupe();
std::unique_ptr<contender> make_handoff();
std::unique_ptr<contender> make_raw();
std::unique_ptr<contender> make_cuda();
std::unique_ptr<contender> make_dpotrf();
std::unique_ptr<contender> make_starpu();
std::unique_ptr<contender> make_tbb();
std::unique_ptr<contender> make_openmp();

}  // namespace bench
