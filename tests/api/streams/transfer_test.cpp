// What this file is for: how long items of a stage of tasks wait for copies between memories.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>

#include <troupe/stream.hpp>
#include <troupe/troupe.hpp>

#include "ledgers.hpp"

namespace {

using namespace troupe;
using namespace std::chrono_literals;
namespace st = troupe::stream;

constexpr index_t width = 1 << 18;
constexpr int count = 60;
using row = st::frame<int, 1>;

inline constexpr kernel<inout<int, 1>> add_one = kernel<inout<int, 1>>("transfer_add_one")
                                                     .on(cpu,
                                                         [](view<int, 1> a) {
                                                           for (index_t i = a.lo(0); i < a.hi(0); ++i) ++a(i);
                                                         })
                                                     .on(gpu, {R"(GPU_KERNEL void transfer_add_one(GPU_INOUT(int, a)) {
                       const long i = GPU_LO(a, 0) + GPU_GLOBAL_ID(0);
                       if (i < GPU_HI(a, 0)) GPU_AT1(a, i) += 1;
                     })",
                                                               "transfer_add_one"});

const scope on_sim = scope::kind(device_kind::sim);

class stream_transfers : public ::testing::Test {
 protected:
  static options with_sim() {
    options o;
    o.threads = 2;
    o.cost_cache = "none";
    o.devices.push_back({"sim:0", 0, 4});
    o.eager_devices = true;
    return o;
  }
  // Frames that the host has written.
  static st::source<row> written(st::recycler<array<int, 1>> from) {
    for (int n = 0; n < count; ++n) {
      row r = from.take();
      {
        auto at = r->write();
        for (index_t i = 0; i < width; ++i) at(i) = n;
      }
      co_yield std::move(r);
    }
  }
  auto source() { return st::from("written", written(st::frames<int>(rt_, {width}))); }
  // Runs the stream to its end and checks what has come out.
  st::report run(st::flow<row> f, int wanted) {
    int n = 0;
    auto r = (f | st::sink("out", [&](const row& x) {
                const auto at = x->read();
                EXPECT_EQ(at(0), n + wanted);
                EXPECT_EQ(at(width - 1), n + wanted);
                ++n;
              })).start(rt_);
    EXPECT_TRUE(test::ends(r));
    r.wait();
    EXPECT_EQ(n, count);
    const st::report told = r.report();
    test::expect_balanced(told);
    return told;
  }
  static const st::stage_report& stage(const st::report& r, const std::string& name) {
    for (const st::stage_report& s : r.stages)
      if (s.name == name) return s;
    throw std::out_of_range(name);
  }
  // All items of the sample have waited, or none.
  static void expect_waits(const st::stage_report& s, bool any) {
    EXPECT_GT(s.transfer.count(), 0u) << s.name;
    EXPECT_EQ(s.transfer.count(), s.service.count()) << s.name;
    if (any)
      EXPECT_GT(s.transfer.quantile(0), 0ns) << s.name;
    else
      EXPECT_EQ(s.transfer.max(), 0ns) << s.name;
    EXPECT_LE(s.transfer.max(), s.service.max()) << s.name;
  }

  runtime rt_{with_sim()};
};

TEST_F(stream_transfers, what_the_host_has_written_is_waited_for_and_what_is_on_the_device_is_not) {
  const st::report r =
      run(source() | st::kernel("in", add_one, {.where = on_sim}) | st::kernel("there", add_one, {.where = on_sim}), 2);
  expect_waits(stage(r, "in"), true);
  expect_waits(stage(r, "there"), false);
  EXPECT_EQ(stage(r, "out").transfer.count(), 0u) << "no stage of tasks";
  EXPECT_NE(r.text().find("in: items have waited for copies"), std::string::npos) << r.text();
  EXPECT_EQ(r.text().find("there: items have waited"), std::string::npos) << r.text();
}

TEST_F(stream_transfers, cores_wait_for_what_a_device_has_written) {
  const st::report r =
      run(source() | st::kernel("near", add_one, {.where = scope::cpu()}) |
              st::kernel("in", add_one, {.where = on_sim}) | st::kernel("home", add_one, {.where = scope::cpu()}),
          3);
  expect_waits(stage(r, "near"), false);
  expect_waits(stage(r, "in"), true);
  expect_waits(stage(r, "home"), true);
}

TEST_F(stream_transfers, a_loop_has_waited_as_long_as_the_chunk_that_waited_most) {
  const st::report r = run(source() | st::tasks("loop",
                                                [](st::spawner& on, row& x) {
                                                  on.for_each(grid(width).chunks(width / 4), add_one, update(*x));
                                                },
                                                {.where = on_sim}),
                           1);
  expect_waits(stage(r, "loop"), true);
}

TEST_F(stream_transfers, an_item_has_waited_as_long_as_the_task_that_waited_most) {
  const st::report r = run(source() | st::tasks("three",
                                                [](st::spawner& on, row& x) {
                                                  for (int n = 0; n < 3; ++n) on.spawn(add_one, update(*x));
                                                },
                                                {.where = on_sim}),
                           3);
  expect_waits(stage(r, "three"), true);
}

}  // namespace
