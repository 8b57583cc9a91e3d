// Patterns, kernel and checks of the graphs in steps.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "steps.hpp"

#include "../contender.hpp"
#include "../workloads.hpp"

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <thread>

namespace bench {

namespace {

constexpr std::size_t random_sets = 16;

std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

std::size_t sets_of(const step_shape& s) {
  if (s.pattern == step_pattern::random_nearest) return random_sets;
  if (s.pattern != step_pattern::fft) return 1;
  std::size_t bits = 1;
  while ((std::size_t{1} << bits) < s.width) ++bits;
  return bits;
}

bool needs(const step_shape& s, std::size_t set, std::size_t at, std::size_t other) {
  const std::size_t distance = at < other ? other - at : at - other;
  switch (s.pattern) {
    case step_pattern::stencil_1d:
      return distance <= 1;
    case step_pattern::nearest:
    case step_pattern::load_imbalance:
      return distance <= 2;
    case step_pattern::fft:
      return distance == 0 || distance == std::size_t{1} << set;
    case step_pattern::all_to_all:
      return true;
    case step_pattern::random_nearest:
      return distance <= 2 && (distance == 0 || mixed((set * s.width + at) * s.width + other) % 2 == 0);
  }
  return false;
}

// Multiplications and additions that no compiler can leave out; 32 chains, so that vector units are kept busy.
[[gnu::noinline]] double compute(std::uint64_t iterations) {
  std::array<double, 32> x;
  x.fill(1.2345);
  for (std::uint64_t i = 0; i < iterations; ++i)
    for (double& each : x) each = each * 0.999 + 0.001;
  double sum = 0;
  for (const double each : x) sum += each;
  return sum;
}

thread_local volatile double sink = 0;

// Copies pieces of the first half to the second one, from the piece with that number on.
void copy(std::byte* scratch, std::size_t bytes, std::uint64_t first, std::uint64_t iterations) {
  const std::size_t half = bytes / 2, pieces = half / scratch_piece;
  for (std::uint64_t i = first; i < first + iterations; ++i) {
    std::byte* const from = scratch + i % pieces * scratch_piece;
    std::memcpy(from + half, from, scratch_piece);
  }
  asm volatile("" : : "r"(scratch) : "memory");
}

std::uint64_t* allocated(std::size_t bytes) {
  auto* const p = static_cast<std::uint64_t*>(std::aligned_alloc(128, bytes));
  if (!p) throw std::bad_alloc();
  return p;
}

}  // namespace

std::string_view name_of(step_pattern p) {
  constexpr std::string_view names[] = {"stencil_1d",     "nearest",    "fft",
                                        "random_nearest", "all_to_all", "load_imbalance"};
  return names[static_cast<std::size_t>(p)];
}

void step_problem::release::operator()(std::uint64_t* p) const { std::free(p); }

step_problem::step_problem(const step_shape& s) : shape_(s), sets_(sets_of(s)) {
  first_.push_back(0);
  for (std::size_t set = 0; set < sets_; ++set)
    for (std::size_t at = 0; at < s.width; ++at) {
      for (std::size_t other = 0; other < s.width; ++other)
        if (needs(s, set, at, other)) inputs_.push_back(static_cast<std::uint32_t>(other));
      first_.push_back(static_cast<std::uint32_t>(inputs_.size()));
    }
  const std::size_t bytes = (s.output_bytes + 127) / 128 * 128;  // nothing shares a line, nor a pair of them
  stride_ = bytes / sizeof(std::uint64_t);
  memory_.reset(allocated(bytes * outputs()));
  if (const std::size_t all = s.scratch_bytes * s.graphs * s.width; all != 0) {
    scratch_.reset(allocated(all));
    std::memset(scratch_.get(), 1, all);
  }
  reset();
}

void step_problem::reset() {
  for (std::size_t i = 0; i < outputs(); ++i) std::ranges::fill(output(i), ~std::uint64_t{0});
  wrong_ = 0;
  ran_before_ = tally::sum();
}

std::uint64_t step_problem::iterations_of(std::size_t step, std::size_t at) const {
  if (shape_.pattern != step_pattern::load_imbalance) return shape_.iterations;
  return mixed(step * shape_.width + at) % (2 * shape_.iterations + 1);
}

void step_problem::run(std::size_t task) {
  const auto [graph, step, at] = point_of(task);
  std::uint64_t wrong = 0;
  for (const std::uint32_t other : inputs(step, at)) {
    const auto in = output(output_of(graph, step - 1, other));
    for (std::size_t i = 0; i < in.size(); i += 2) wrong += in[i] != step - 1 || in[i + 1] != other;
  }
  if (wrong != 0) wrong_.fetch_add(wrong, std::memory_order_relaxed);
  work(graph, step, at);
  const auto out = output(output_of(graph, step, at));
  for (std::size_t i = 0; i < out.size(); i += 2) {
    out[i] = step;
    out[i + 1] = at;
  }
  tally::add();
}

void step_problem::work(std::size_t graph, std::size_t step, std::size_t at) const {
  const std::uint64_t iterations = iterations_of(step, at);
  if (shape_.scratch_bytes == 0) {
    sink = compute(iterations);
    return;
  }
  const std::size_t number = graph * shape_.width + at;
  copy(reinterpret_cast<std::byte*>(scratch_.get()) + number * shape_.scratch_bytes, shape_.scratch_bytes,
       step * shape_.iterations, iterations);
}

void step_problem::check() const {
  const auto ran = tally::sum() - ran_before_;
  if (ran != tasks())
    throw wrong_answer("ran " + std::to_string(ran) + " of " + std::to_string(tasks()) + " tasks of " +
                       std::string(name_of(shape_.pattern)));
  if (const auto wrong = wrong_.load(); wrong != 0)
    throw wrong_answer(std::to_string(wrong) + " inputs of " + std::string(name_of(shape_.pattern)) +
                       " were not what the step before had made");
}

double step_problem::ideal_ns(unsigned threads, double iteration) const {
  double iterations = 0;
  for (std::size_t step = 0; step < shape_.steps; ++step)
    for (std::size_t at = 0; at < shape_.width; ++at) iterations += static_cast<double>(iterations_of(step, at));
  return iterations * static_cast<double>(shape_.graphs) * iteration / threads;
}

std::vector<std::vector<std::uint32_t>> step_edges(const step_problem& p) {
  struct buffer {
    std::uint32_t writer = ~0U;
    std::vector<std::uint32_t> readers;
  };
  std::vector<buffer> buffers(p.outputs());
  std::vector<std::vector<std::uint32_t>> edges(p.tasks());
  for (std::size_t task = 0; task < p.tasks(); ++task) {
    const auto [graph, step, at] = p.point_of(task);
    auto& before = edges[task];
    for (const auto other : p.inputs(step, at)) {
      buffer& in = buffers[p.output_of(graph, step - 1, other)];
      before.push_back(in.writer);
      in.readers.push_back(static_cast<std::uint32_t>(task));
    }
    buffer& out = buffers[p.output_of(graph, step, at)];
    before.insert(before.end(), out.readers.begin(), out.readers.end());
    if (out.writer != ~0U && out.readers.empty()) before.push_back(out.writer);
    out = {static_cast<std::uint32_t>(task), {}};
    std::ranges::sort(before);
    before.erase(std::unique(before.begin(), before.end()), before.end());
  }
  return edges;
}

void compute_steps(std::uint64_t iterations) { sink = compute(iterations); }

double iteration_ns(unsigned threads, std::size_t scratch_bytes) {
  const std::uint64_t iterations = scratch_bytes == 0 ? 50'000 : 2'000;
  double best = 0;
  for (int run = 0; run < 5; ++run) {
    // The threads read the clock themselves: the one that started them may not run before they have ended.
    std::barrier together(static_cast<std::ptrdiff_t>(threads));
    std::vector<double> took(threads);
    std::vector<std::thread> all;
    for (unsigned i = 0; i < threads; ++i)
      all.emplace_back([&, i] {
        std::vector<std::byte> scratch(scratch_bytes, std::byte{1});
        together.arrive_and_wait();
        const auto begin = std::chrono::steady_clock::now();
        if (scratch_bytes == 0)
          sink = compute(iterations);
        else
          copy(scratch.data(), scratch_bytes, 0, iterations);
        took[i] = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
      });
    for (auto& t : all) t.join();
    const double each = *std::ranges::max_element(took) / static_cast<double>(iterations);
    best = best == 0 ? each : std::min(best, each);
  }
  return best;
}

}  // namespace bench
