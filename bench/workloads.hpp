// The work itself, the same for every contender: the random graph, the spinning body, counts that prove it was done.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "contender.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace bench {

/// Linear congruential generator of Numerical Recipes; one seed, so that every contender sees the same graph.
class lcg {
 public:
  std::uint32_t operator()() {
    state_ = state_ * 1664525U + 1013904223U;
    return state_ >> 16;
  }

 private:
  std::uint32_t state_ = 12345;
};

// --- time -----------------------------------------------------------------------------------------------------------

/// The cheapest clock there is, for spinning: a read costs about 8 ns, a steady_clock read three times as much, which
/// would be visible in a body of half a microsecond.
inline std::uint64_t ticks_now() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

/// Ticks of `ticks_now` in this many nanoseconds; calibrated against steady_clock on first use (about 20 ms).
std::uint64_t ticks_in(std::chrono::nanoseconds);

inline void spin(std::uint64_t ticks) {
  const auto begin = ticks_now();
  while (ticks_now() - begin < ticks) {
  }
}

// --- proof ----------------------------------------------------------------------------------------------------------

/// Counts executed bodies, about a nanosecond each: every thread adds to a cache line of its own.
class tally {
 public:
  static void add() {
    auto& mine = slots_[my_slot()].value;
    mine.store(mine.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  [[nodiscard]] static std::uint64_t sum();

 private:
  struct alignas(64) slot {
    std::atomic<std::uint64_t> value{0};
  };
  static std::size_t my_slot() {
    thread_local const std::size_t index = next_.fetch_add(1, std::memory_order_relaxed) % slots_.size();
    return index;
  }
  static std::array<slot, 4096> slots_;  // more than the threads that all contenders ever start in one run
  static std::atomic<std::size_t> next_;
};

/// Throws `wrong_answer` unless exactly `expected` bodies ran between construction and `check`.
class executed {
 public:
  executed() : before_(tally::sum()) {}
  void check(std::uint64_t expected) const;

 private:
  std::uint64_t before_;
};

// --- the random graph -----------------------------------------------------------------------------------------------

inline constexpr std::size_t dag_handles = 64;

struct dag_task {
  std::uint32_t read_a, read_b, update;  // three different handles of dag_handles
};

struct dag {
  std::vector<dag_task> tasks;
  std::uint64_t body_ticks = 0;
  /// Where bodies leave a value that depends on the order of every conflicting pair; null in timed runs.
  std::uint64_t* values = nullptr;
};

dag make_dag(std::size_t tasks, std::chrono::nanoseconds body = {});

/// Runs task i of the graph, as every contender does.
inline void run_dag_task(const dag& graph, std::size_t i) {
  if (graph.body_ticks != 0) spin(graph.body_ticks);
  if (graph.values != nullptr) {
    const auto& task = graph.tasks[i];
    auto* v = graph.values;
    v[task.update] = (v[task.update] * 31 + v[task.read_a] * 7 + v[task.read_b]) * 0x9E3779B97F4A7C15ULL + i;
  }
  tally::add();
}

/// The values that serial execution leaves, starting from zero and running the graph `rounds` times.
std::array<std::uint64_t, dag_handles> run_dag_serially(const dag&, int rounds = 1);

/// Predecessors of every task (last writer, readers since), for peers that want edges given. Task i's are
/// `from[first[i] .. first[i + 1])`, each at most once.
struct dag_edges {
  std::vector<std::uint32_t> first, from;
  [[nodiscard]] std::span<const std::uint32_t> of(std::size_t i) const {
    return std::span(from).subspan(first[i], first[i + 1] - first[i]);
  }
};
dag_edges derive_edges(const dag&);

// --- memory and waiting ---------------------------------------------------------------------------------------------

/// The process's memory now, in bytes: resident pages, and what malloc has given out.
struct memory_use {
  double resident = 0;
  double allocated = 0;
  [[nodiscard]] static memory_use now();
  /// Growth since `before`, by whichever of the two saw more: resident pages miss what reuses freed blocks, and malloc
  /// misses pools that map their own pages.
  [[nodiscard]] double grown_since(const memory_use& before) const;
};

/// Bodies block in `wait` until `open`; not a spin, so that a held task costs nothing.
class gate {
 public:
  void wait() const { open_.wait(false, std::memory_order_acquire); }
  void open() {
    open_.store(true, std::memory_order_release);
    open_.notify_all();
  }

 private:
  std::atomic<bool> open_{false};
};

[[nodiscard]] double median(std::vector<double>);

void sleep_for(std::chrono::microseconds);

/// The round-trip loop that every contender shares: `one` submits an empty task and waits for it.
template <class One>
double median_round_trip(std::size_t samples, std::chrono::microseconds idle, One&& one) {
  std::vector<double> taken(samples);
  for (auto& nanoseconds : taken) {
    if (idle.count() != 0) sleep_for(idle);
    const auto begin = std::chrono::steady_clock::now();
    one();
    nanoseconds = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
  }
  return median(std::move(taken));
}

}  // namespace bench
