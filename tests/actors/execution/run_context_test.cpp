// What this file is for: one run of a body without an executor: its views, and what stays of what it wrote.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/execution/run_context.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <stop_token>
#include <utility>

#include <troupe/error.hpp>

#include "actors/logic/data/reduction.hpp"
#include "actors/memory/host_tiles.hpp"
#include "actors/memory/record_pool.hpp"
#include "tests/actors/memory/host_arrays.hpp"

namespace {

using namespace troupe::detail;
using troupe::error;
using troupe::index_t;
using enum troupe::access_mode;
using number = std::uint32_t;
using four = std::array<index_t, 4>;

/// A host that copies boxes element by element.
class copying_host final : public troupe::devices::device {
 public:
  const troupe::devices::device_facts& facts() const override { return facts_; }
  std::byte* allocate(std::size_t bytes, std::size_t) override { return new std::byte[bytes]; }
  void deallocate(std::byte* p, std::size_t, std::size_t) noexcept override { delete[] p; }
  void copy(std::byte* to, const four& to_stride, const std::byte* from, const four& from_stride, const four& count,
            std::size_t element) override {
    four i{};
    for (i[0] = 0; i[0] < count[0]; ++i[0])
      for (i[1] = 0; i[1] < count[1]; ++i[1])
        for (i[2] = 0; i[2] < count[2]; ++i[2])
          for (i[3] = 0; i[3] < count[3]; ++i[3]) {
            index_t there = 0, here = 0;
            for (std::size_t d = 0; d < 4; ++d) {
              there += i[d] * to_stride[d];
              here += i[d] * from_stride[d];
            }
            std::memcpy(to + there * static_cast<index_t>(element), from + here * static_cast<index_t>(element),
                        element);
          }
  }
  void fill(std::byte* to, const std::byte* value, std::size_t element, std::size_t count) override {
    for (std::size_t i = 0; i < count; ++i) std::memcpy(to + i * element, value, element);
  }

 private:
  troupe::devices::device_facts facts_{"copying", 0};
};

/// A matrix of 4 x 4 numbers in tiles of 2 x 2, with 10 * row + column in each, and a task that uses boxes of it.
class run_of_a_body : public testing::Test {
 protected:
  run_of_a_body() {
    for (index_t i = 0; i < 4; ++i)
      for (index_t j = 0; j < 4; ++j) *element(i, j) = value(i, j);
    task->access_count = 0;
    context.bind(*task);
  }
  ~run_of_a_body() override {
    delete std::exchange(task->extra, nullptr);
    memory.state->records.give(task);
  }
  static number value(index_t i, index_t j) { return static_cast<number>(10 * i + j); }
  number* element(index_t i, index_t j) {
    const std::uint32_t t = matrix.core.tile_at({i, j, 0, 0});
    auto* const tile = reinterpret_cast<number*>(host_tile(*memory.state, matrix.core, t, false));
    return tile + i % 2 * 2 + j % 2;
  }
  static number& in(const raw_view& v, index_t i, index_t j) {
    return reinterpret_cast<number*>(v.data)[(i - v.lo[0]) * v.stride[0] + (j - v.lo[1]) * v.stride[1]];
  }
  // Adds an access to the box from row and column `lo` to before `hi`; returns its number.
  int box(troupe::access_mode mode, index_t lo, index_t hi) {
    region& r = regions.emplace_back();
    r.lo = {lo, lo, 0, 0};
    r.hi = {hi, hi, 1, 1};
    r.limit_hi = matrix.core.spec.size;
    troupe::detail::access& x = add(mode);
    x.where = &r;
    return task->access_count - 1;
  }
  int tile(troupe::access_mode mode, std::uint32_t t) {
    add(mode).tile = t;
    return task->access_count - 1;
  }
  troupe::detail::access& add(troupe::access_mode mode) {
    troupe::detail::access& x = task->accesses[task->access_count++];
    x = {};
    x.array = &matrix.core;
    x.mode = mode;
    return x;
  }
  void allow_retries(int n) {
    task->extra = new task_extra;
    task->extra->options.retries = n;
  }

  test::host_memory_alone memory;
  copying_host host;
  test::tiled_matrix matrix{memory, 4, 4, 2, 2};
  std::deque<region> regions;
  std::atomic<bool> stopping{false};
  scratch buffers;
  task_record* const task = take_record(*memory.state);
  run_context context{host, *memory.state, buffers, "cpu:0", stopping};
};

TEST_F(run_of_a_body, shows_a_box_of_several_tiles_as_one_piece) {
  const raw_view v = context.view_of(box(read, 1, 3));
  EXPECT_EQ(v.lo, (four{1, 1, 0, 0}));
  EXPECT_EQ(v.hi, (four{3, 3, 1, 1}));
  for (index_t i = 1; i < 3; ++i)
    for (index_t j = 1; j < 3; ++j) EXPECT_EQ(in(v, i, j), value(i, j)) << i << ' ' << j;
  context.commit();
  EXPECT_EQ(context.take_bytes_moved(), 4 * sizeof(number));
  EXPECT_EQ(context.take_bytes_moved(), 0u) << "since the last call";
}

TEST_F(run_of_a_body, shows_a_tile_in_place) {
  const raw_view v = context.view_of(tile(update, 3));
  EXPECT_EQ(&in(v, v.lo[0], v.lo[1]), element(2, 2));
  context.commit();
  EXPECT_EQ(context.take_bytes_moved(), 0u);
}

TEST_F(run_of_a_body, writes_a_box_back_when_the_body_has_succeeded) {
  const raw_view v = context.view_of(box(update, 1, 3));
  for (index_t i = 1; i < 3; ++i)
    for (index_t j = 1; j < 3; ++j) in(v, i, j) += 100;
  EXPECT_EQ(*element(2, 1), value(2, 1)) << "not before its end";
  context.commit();
  for (index_t i = 0; i < 4; ++i)
    for (index_t j = 0; j < 4; ++j) {
      const bool inside = i >= 1 && i < 3 && j >= 1 && j < 3;
      EXPECT_EQ(*element(i, j), value(i, j) + (inside ? 100 : 0)) << i << ' ' << j;
    }
}

TEST_F(run_of_a_body, drops_what_a_body_that_failed_has_written_to_a_box) {
  in(context.view_of(box(update, 1, 3)), 2, 1) = 7;
  context.roll_back();
  EXPECT_EQ(*element(2, 1), value(2, 1));
  context.commit();
  EXPECT_EQ(*element(2, 1), value(2, 1)) << "nothing is held any more";
}

TEST_F(run_of_a_body, does_not_write_back_what_is_only_read) {
  in(context.view_of(box(read, 1, 3)), 2, 1) = 7;
  context.commit();
  EXPECT_EQ(*element(2, 1), value(2, 1));
}

TEST_F(run_of_a_body, restores_a_tile_as_long_as_a_retry_is_left) {
  allow_retries(1);
  const int a = tile(update, 3);
  const raw_view first = context.view_of(a);
  in(first, first.lo[0], first.lo[1]) = 7;
  EXPECT_EQ(*element(2, 2), 7u) << "in place";
  context.roll_back();
  EXPECT_EQ(*element(2, 2), value(2, 2));
  context.next_attempt();
  EXPECT_EQ(context.attempt(), 2);
  const raw_view last = context.view_of(a);
  in(last, last.lo[0], last.lo[1]) = 8;
  context.roll_back();
  EXPECT_EQ(*element(2, 2), 8u) << "nobody reads it: the task has failed";
}

TEST_F(run_of_a_body, knows_why_a_view_could_not_be_made) {
  test::tiled_matrix other(memory, 4, 4, 2, 2);
  troupe::detail::access& x = add(write);
  x.array = &other.core;
  memory.host().full = true;
  EXPECT_THROW(context.view_of(0), error);
  EXPECT_EQ(context.failure(), troupe::errc::out_of_memory);
  context.next_attempt();
  EXPECT_EQ(context.failure(), troupe::errc::task_failed);
}

TEST_F(run_of_a_body, asks_to_stop_when_the_runtime_or_the_task_is_to) {
  EXPECT_FALSE(context.stop_requested());
  stopping = true;
  EXPECT_TRUE(context.stop_requested());
  stopping = false;
  allow_retries(0);
  std::stop_source stop;
  task->extra->options.stop = stop.get_token();
  EXPECT_FALSE(context.stop_requested());
  stop.request_stop();
  EXPECT_TRUE(context.stop_requested());
}

class partials_of_a_run : public run_of_a_body {
 protected:
  partials_of_a_run() {
    sum.where.hi = {1, 2, 1, 1};
    sum.element = sizeof(number);
    const number one = 1;
    std::memcpy(sum.identity.data(), &one, sizeof one);
    allow_retries(1);
    box(reduce, 0, 2);
    regions.back().partials = &sum;
  }
  reduction sum;
};

TEST_F(partials_of_a_run, begin_with_the_identity_and_go_to_the_next_run) {
  const raw_view v = context.view_of(0);
  EXPECT_EQ(in(v, 0, 0), 1u);
  EXPECT_EQ(in(v, 0, 1), 1u);
  in(v, 0, 1) = 5;
  EXPECT_TRUE(sum.idle.empty());
  context.commit();
  ASSERT_EQ(sum.idle.size(), 1u);
  EXPECT_EQ(in(context.view_of(0), 0, 1), 5u);
  EXPECT_TRUE(sum.idle.empty()) << "the same partial";
  context.commit();
  EXPECT_EQ(sum.taken, 1u);
}

TEST_F(partials_of_a_run, are_as_before_when_the_body_has_failed) {
  in(context.view_of(0), 0, 1) = 5;
  context.commit();
  in(context.view_of(0), 0, 1) = 9;
  context.roll_back();
  EXPECT_EQ(in(context.view_of(0), 0, 1), 5u);
  context.commit();
}

}  // namespace
