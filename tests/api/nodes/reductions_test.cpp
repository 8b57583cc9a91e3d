// What this file is for: partials of a reduction are added up on the node where they are made, before they are sent.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <vector>

#include <troupe/offer.hpp>
#include <troupe/troupe.hpp>

#include "several_nodes.hpp"

namespace {

using namespace troupe;
using test::on;
using test::several_nodes;
using troupe::index_t;

constexpr index_t bins = 8192, chunks = 16, side = 64 * chunks;
constexpr std::uint64_t partial_bytes = bins * sizeof(std::uint64_t);

struct sum {
  std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const { return a + b; }
};

constexpr auto count = kernel<in<std::uint32_t, 1>, red<std::uint64_t, 1>>("reductions.count")
                           .on(cpu, [](view<const std::uint32_t, 1> from, view<std::uint64_t, 1> to) {
                             for (index_t i = from.lo(0); i < from.hi(0); ++i) to(from(i) % bins) += from(i);
                           });
constexpr auto count_or_throw =
    kernel<in<std::uint32_t, 1>, red<std::uint64_t, 1>, std::uint32_t>("reductions.throws")
        .on(cpu, [](view<const std::uint32_t, 1> from, view<std::uint64_t, 1> to, std::uint32_t bad) {
          for (index_t i = from.lo(0); i < from.hi(0); ++i) {
            to(from(i) % bins) += from(i);
            if (from(i) == bad) throw std::runtime_error("a bad number");
          }
        });
constexpr auto count_and_tell =
    kernel<in<std::uint32_t, 1>, red<std::uint64_t, 1>, out<std::uint32_t, 1>>("reductions.tells")
        .on(cpu, [](view<const std::uint32_t, 1> from, view<std::uint64_t, 1> to, view<std::uint32_t, 1> last) {
          for (index_t i = from.lo(0); i < from.hi(0); ++i) to(from(i) % bins) += from(i);
          for (index_t i = last.lo(0); i < last.hi(0); ++i) last(i) = from(i);
        });
std::binary_semaphore may_end{0};
constexpr auto count_late = kernel<in<std::uint32_t, 1>, red<std::uint64_t, 1>>("reductions.late")
                                .on(cpu, [](view<const std::uint32_t, 1> from, view<std::uint64_t, 1> to) {
                                  may_end.acquire();
                                  for (index_t i = from.lo(0); i < from.hi(0); ++i) to(from(i) % bins) += from(i);
                                });
const offer offered{count, count_or_throw, count_and_tell, count_late};

class reductions_on_nodes : public ::testing::Test {
 protected:
  reductions_on_nodes() {
    const auto to = data_.write();
    for (index_t i = 0; i < side; ++i) to(i) = static_cast<std::uint32_t>(i * 37);
  }
  void expect_total(std::uint64_t times) const {
    std::vector<std::uint64_t> right(bins, 1);
    for (index_t i = 0; i < side; ++i)
      right[static_cast<std::size_t>(i * 37 % bins)] += times * static_cast<std::uint64_t>(i * 37);
    const auto seen = total_.read();
    std::size_t wrong = 0;
    for (index_t i = 0; i < bins; ++i) wrong += seen(i) != right[static_cast<std::size_t>(i)];
    EXPECT_EQ(wrong, 0u);
  }
  // What has come from the node.
  std::uint64_t bytes_in() const {
    std::uint64_t n = 0;
    for (const auto& e : n_.a.executors())
      if (e.name == "b") n += e.bytes_out;
    return n;
  }
  index_space<1> all() const { return grid(side).chunks(side / chunks); }

  several_nodes n_{1};
  array<std::uint32_t, 1> data_ = n_.a.array<std::uint32_t>({side}, tiles(side / chunks), "data");
  array<std::uint64_t, 1> total_ = n_.a.filled<std::uint64_t>({bins}, tiles(bins), 1, "total");
};

TEST_F(reductions_on_nodes, bring_few_partials_home) {
  n_.a.for_each(on("b"), all(), count, read(data_), reduce(total_)).get();
  expect_total(1);
  EXPECT_EQ(test::tasks_of(n_.a, "b"), static_cast<std::uint64_t>(chunks));
  EXPECT_GE(bytes_in(), partial_bytes);
  EXPECT_LE(bytes_in(), partial_bytes * chunks / 2);
}

TEST_F(reductions_on_nodes, have_each_partial_once_however_they_come) {
  for (int i = 0; i < 20; ++i) {
    n_.a.for_each(all(), count, read(data_), reduce(total_));           // anywhere
    n_.a.for_each(on("b"), all(), count, read(data_), reduce(total_));  // there
    if (i % 5 == 4) n_.a.wait_all();
  }
  expect_total(40);
}

TEST_F(reductions_on_nodes, by_operators_of_the_program_bring_each_partial) {
  n_.a.for_each(on("b"), all(), count, read(data_), reduce(total_, sum(), 0)).get();
  expect_total(1);
  EXPECT_EQ(bytes_in(), partial_bytes * chunks);
}

TEST_F(reductions_on_nodes, of_tasks_that_also_write_bring_each_partial) {
  const auto last = n_.a.array<std::uint32_t>({side}, tiles(side / chunks), "last");
  n_.a.for_each(on("b"), all(), count_and_tell, read(data_), reduce(total_), write(last)).get();
  expect_total(1);
  EXPECT_EQ(last.read()(side - 1), static_cast<std::uint32_t>((side - 1) * 37));
  EXPECT_GE(bytes_in(), partial_bytes * chunks);
}

TEST_F(reductions_on_nodes, of_which_one_fails_are_in_error_and_the_others_end_well) {
  std::vector<future<void>> each;
  for (index_t c = 0; c < chunks; ++c) {
    const index_t lo = c * (side / chunks);
    each.push_back(n_.a.spawn(on("b"), count_or_throw, read(data_.sub({{lo}, {lo + side / chunks}})), reduce(total_),
                              std::uint32_t{37 * 64 * 3}));
  }
  for (index_t c = 0; c < chunks; ++c) {
    if (c == 3)
      EXPECT_THROW(each[static_cast<std::size_t>(c)].get(), task_failed);
    else
      EXPECT_NO_THROW(each[static_cast<std::size_t>(c)].get()) << c;
  }
  EXPECT_THROW(static_cast<void>(total_.read()), error);
}

TEST_F(reductions_on_nodes, that_were_tried_again_have_left_nothing_behind) {
  for (index_t c = 0; c < chunks; ++c) {
    const index_t lo = c * (side / chunks);
    n_.a.spawn({.where = scope::at("b"), .retries = 2}, count_or_throw, read(data_.sub({{lo}, {lo + side / chunks}})),
               reduce(total_), c == 3 ? std::uint32_t{37 * 64 * 3} : std::uint32_t{1});
  }
  EXPECT_THROW(static_cast<void>(total_.read()), error) << "it throws each time";
  const auto fresh = n_.a.filled<std::uint64_t>({bins}, tiles(bins), 1, "fresh");
  n_.a.for_each(on("b"), all(), count, read(data_), reduce(fresh)).get();
  EXPECT_EQ(fresh.read()(37), 38u);
}

// Else a program that lets the one go on when the other has ended would wait for ever.
TEST_F(reductions_on_nodes, do_not_hold_up_tasks_for_others_that_take_long) {
  const auto first = data_.sub({{0}, {side / 2}}), second = data_.sub({{side / 2}, {side}});
  const auto late = n_.a.spawn(on("b"), count_late, read(first), reduce(total_));
  const auto soon = n_.a.spawn(on("b"), count, read(second), reduce(total_));
  const bool ended = soon.wait_for(std::chrono::seconds(20));
  EXPECT_TRUE(ended);
  EXPECT_FALSE(late.is_ready());
  may_end.release();
  late.get();
  soon.get();
  expect_total(1);
}

// The node leaves while it adds up: what it does not send is made again here.
TEST_F(reductions_on_nodes, that_go_with_their_node_are_made_again) {
  for (int round = 0; round < 10; ++round) n_.a.for_each(all(), count, read(data_), reduce(total_));
  n_.rest.clear();
  n_.a.for_each(all(), count, read(data_), reduce(total_));
  expect_total(11);
}

}  // namespace
