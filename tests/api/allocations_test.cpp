// What this file is for: tasks of a program that has been running for a while take no memory from the heap.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <new>
#include <random>
#include <span>
#include <vector>

#include <troupe/troupe.hpp>

namespace {
std::atomic<std::size_t> taken{0};

[[maybe_unused, gnu::noinline]] void* take(std::size_t bytes, std::size_t align) {
  taken.fetch_add(1, std::memory_order_relaxed);
  void* p = nullptr;
  if (align <= alignof(std::max_align_t))
    p = std::malloc(bytes == 0 ? 1 : bytes);
  else if (posix_memalign(&p, align, bytes) != 0)
    p = nullptr;
  if (!p) throw std::bad_alloc();
  return p;
}
}  // namespace

// All of this program's. Sanitizers have operators of their own; with these, what libraries free would be taken for
// races.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool is_counted = false;
#else
constexpr bool is_counted = true;
void* operator new(std::size_t bytes) { return take(bytes, 1); }
void* operator new[](std::size_t bytes) { return take(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t a) { return take(bytes, static_cast<std::size_t>(a)); }
void* operator new[](std::size_t bytes, std::align_val_t a) { return take(bytes, static_cast<std::size_t>(a)); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
#endif

namespace {

using namespace troupe;

// A thread may run behind the others now and then, so that there are more tasks at a time than ever before.
constexpr double few = 0.01;

class allocations : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!is_counted) GTEST_SKIP() << "a sanitizer has the operators";
  }
  // Allocations for each of so many tasks, which one call of `spawn_some` submits, in programs of the same that have
  // run before.
  double for_each_task(runtime& rt, int tasks, const std::function<void()>& spawn_some) {
    for (int i = 0; i < 20; ++i) {
      spawn_some();
      rt.wait_all();
    }
    constexpr int measured = 20;
    const std::size_t before = taken.load();
    for (int i = 0; i < measured; ++i) {
      spawn_some();
      rt.wait_all();
    }
    return static_cast<double>(taken.load() - before) / (measured * tasks);
  }
  static options on_cores() {
    options o;
    o.threads = GetParam();
    o.cost_cache = "none";
    return o;
  }
  static std::vector<array<int, 1>> row(runtime& rt, std::size_t n) {
    std::vector<array<int, 1>> all;
    for (std::size_t i = 0; i < n; ++i) all.push_back(rt.filled<int>({4}, tiles(4), 0));
    return all;
  }
};

TEST_P(allocations, are_not_made_for_tasks_in_a_chain) {
  runtime rt(on_cores());
  auto x = rt.filled<int>({4}, tiles(4), 0);
  EXPECT_LT(for_each_task(rt, 500,
                          [&] {
                            for (int i = 0; i < 500; ++i) rt.spawn([](view<int, 1> v) { ++v(0); }, update(x));
                          }),
            few);
}

TEST_P(allocations, are_not_made_for_a_task_with_32_successors) {
  runtime rt(on_cores());
  auto x = rt.filled<int>({4}, tiles(4), 0);
  const auto of_each = row(rt, 32);
  EXPECT_LT(for_each_task(rt, 33 * 20,
                          [&] {
                            for (int i = 0; i < 20; ++i) {
                              rt.spawn([](view<int, 1> v) { ++v(0); }, update(x));
                              for (const auto& own : of_each)
                                rt.spawn([](view<const int, 1> in, view<int, 1> v) { v(0) = in(0); }, read(x),
                                         update(own));
                            }
                          }),
            few);
}

// Each step reads what the one before has written: all of it, with which readers meet at gates, or some at random.
class allocations_of_steps : public allocations {
 protected:
  static constexpr std::size_t width = 16;
  double for_each_step(bool all) {
    runtime rt(on_cores());
    const std::array rows{row(rt, width), row(rt, width)};
    std::mt19937 random(1);
    std::vector<array<int, 1>> list;
    return for_each_task(rt, 40 * static_cast<int>(width), [&] {
      for (std::size_t step = 0; step < 40; ++step)
        for (std::size_t i = 0; i < width; ++i) {
          const auto& from = rows[step % 2];
          list.clear();
          for (std::size_t k = 0; k < width - 1; ++k)
            if (all || random() % 2 == 0) list.push_back(from[k]);
          rt.spawn(
              [](std::span<const view<const int, 1>> in, view<int, 1> v) {
                for (const auto& one : in) v(0) += one(0);
              },
              read_all(list), update(rows[(step + 1) % 2][i]));
        }
    });
  }
};

TEST_P(allocations_of_steps, are_not_made_for_tasks_with_16_accesses) { EXPECT_LT(for_each_step(true), few); }
TEST_P(allocations_of_steps, are_not_made_for_tasks_with_up_to_16_accesses_at_random) {
  EXPECT_LT(for_each_step(false), few);
}

TEST_P(allocations, are_not_made_for_the_nodes_of_a_graph) {
  runtime rt(on_cores());
  auto x = rt.filled<int>({4}, tiles(4), 0);
  const graph g = rt.record([&](recorder& r) {
    for (int i = 0; i < 100; ++i) r.spawn([](view<int, 1> v) { ++v(0); }, update(x));
  });
  constexpr int runs = 20, for_each_run = 2;
  EXPECT_LE(for_each_task(rt, runs,
                          [&] {
                            for (int i = 0; i < runs; ++i) rt.run(g);
                          }),
            for_each_run + 0.5);
}

INSTANTIATE_TEST_SUITE_P(threads, allocations, testing::Values(1, 2, 5));
INSTANTIATE_TEST_SUITE_P(threads, allocations_of_steps, testing::Values(1, 2, 5));

}  // namespace
