// Task Bench's question with a driver of our own: steps of a few tasks each, every one of which needs some of the step
// before. The same graphs, kernel and checks for every contender.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Patterns and kernels are those of StanfordLegion/task-bench: an output is filled with pairs (step, point), a task
// checks every pair of its inputs, computes or copies memory for a given number of iterations and fills its own output.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace bench {

/// The points of the step before that a point needs. In load_imbalance as in nearest; its tasks take 0 to 2 times as
/// long as the others', by chance.
enum class step_pattern { stencil_1d, nearest, fft, random_nearest, all_to_all, load_imbalance };
inline constexpr step_pattern step_patterns[] = {step_pattern::stencil_1d, step_pattern::nearest,
                                                 step_pattern::fft,        step_pattern::random_nearest,
                                                 step_pattern::all_to_all, step_pattern::load_imbalance};
std::string_view name_of(step_pattern);

struct step_shape {
  step_pattern pattern = step_pattern::stencil_1d;
  std::size_t width = 4;  ///< tasks of a step, of each graph
  std::size_t steps = 100;
  std::size_t graphs = 1;         ///< which share nothing and run side by side
  std::size_t output_bytes = 16;  ///< a multiple of 16
  std::uint64_t iterations = 0;   ///< of the kernel, in the mean
  /// Memory of each point, a multiple of two pieces: an iteration copies a piece, all in turn. 0: it computes.
  std::size_t scratch_bytes = 0;
};
inline constexpr std::size_t scratch_piece = 4096;

/// The graphs with the memory of their outputs: two buffers for each point, used in turn.
class step_problem {
 public:
  explicit step_problem(const step_shape&);
  step_problem(const step_problem&) = delete;
  step_problem& operator=(const step_problem&) = delete;

  [[nodiscard]] const step_shape& shape() const { return shape_; }
  [[nodiscard]] std::size_t tasks() const { return shape_.graphs * shape_.steps * shape_.width; }
  /// Task number `task` in submission order: step by step, graph by graph within a step.
  struct point {
    std::size_t graph, step, at;
  };
  [[nodiscard]] point point_of(std::size_t task) const {
    const std::size_t row = shape_.graphs * shape_.width;
    return {task % row / shape_.width, task / row, task % shape_.width};
  }
  /// The points of the step before that the point needs, rising; none in step 0.
  [[nodiscard]] std::span<const std::uint32_t> inputs(std::size_t step, std::size_t at) const {
    if (step == 0) return {};
    const std::size_t i = step % sets_ * shape_.width + at;
    return std::span(inputs_).subspan(first_[i], first_[i + 1] - first_[i]);
  }
  /// For callers that prepare lists of inputs: those of two steps with the same set are the same, but for step 0.
  [[nodiscard]] std::size_t sets() const { return sets_; }
  /// Number of the output buffer that a point of a step writes, below `outputs()`.
  [[nodiscard]] std::size_t output_of(std::size_t graph, std::size_t step, std::size_t at) const {
    return (graph * 2 + step % 2) * shape_.width + at;
  }
  [[nodiscard]] std::size_t outputs() const { return shape_.graphs * 2 * shape_.width; }
  [[nodiscard]] std::span<std::uint64_t> output(std::size_t number) {
    return std::span(memory_.get() + number * stride_, shape_.output_bytes / sizeof(std::uint64_t));
  }

  /// Runs a task: checks its inputs, runs the kernel, writes its output. Any thread.
  void run(std::size_t task);
  /// Runs the kernel of a task alone.
  void work(std::size_t graph, std::size_t step, std::size_t at) const;
  /// Before a run: forgets outputs and counts.
  void reset();
  /// After a run: throws `wrong_answer` unless every task ran and found its inputs right.
  void check() const;

  /// Iterations of the kernel in that task.
  [[nodiscard]] std::uint64_t iterations_of(std::size_t step, std::size_t at) const;
  /// Returns how long the tasks take with all of `threads` busy and nothing lost, where an iteration takes
  /// `iteration`; in nanoseconds.
  [[nodiscard]] double ideal_ns(unsigned threads, double iteration) const;

 private:
  struct release {
    void operator()(std::uint64_t*) const;
  };
  step_shape shape_;
  std::size_t sets_ = 1, stride_ = 0;
  std::vector<std::uint32_t> first_, inputs_;
  std::unique_ptr<std::uint64_t[], release> memory_, scratch_;
  alignas(64) std::atomic<std::uint64_t> wrong_{0};
  std::uint64_t ran_before_ = 0;
};

/// Predecessors of each task, for peers that want edges given: the writers of what it reads, and the readers and the
/// writer of what it overwrites. Rising, each once.
std::vector<std::vector<std::uint32_t>> step_edges(const step_problem&);

/// The kernel that computes: so many iterations on the calling thread, which no compiler can leave out.
void compute_steps(std::uint64_t iterations);

/// Measures the time of one iteration of the kernel with all of `threads` at it, in nanoseconds: the best of several
/// runs of a millisecond or so. It holds for the next second: the speed of a machine that is shared changes by
/// a factor of two from minute to minute.
double iteration_ns(unsigned threads, std::size_t scratch_bytes = 0);

}  // namespace bench
