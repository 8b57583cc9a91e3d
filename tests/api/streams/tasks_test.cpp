// What this file is for: stages of streams whose work is tasks: kernels on cores and on devices.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <troupe/stream.hpp>
#include <troupe/troupe.hpp>

#include "ledgers.hpp"

namespace {

using namespace troupe;
using namespace std::chrono_literals;
namespace st = troupe::stream;

constexpr index_t width = 256;
using row = st::frame<int, 1>;

inline constexpr kernel<inout<int, 1>, int> add_in_place =
    kernel<inout<int, 1>, int>("stream_add")
        .on(cpu,
            [](view<int, 1> a, int by) {
              for (index_t i = a.lo(0); i < a.hi(0); ++i) a(i) += by;
            })
        .on(gpu, {R"(GPU_KERNEL void stream_add(GPU_INOUT(int, a), const int by) {
                       const long i = GPU_LO(a, 0) + GPU_GLOBAL_ID(0);
                       if (i < GPU_HI(a, 0)) GPU_AT1(a, i) += by;
                     })",
                  "stream_add"});
inline constexpr kernel<in<int, 1>, out<long, 1>> squares =
    kernel<in<int, 1>, out<long, 1>>("stream_squares")
        .on(cpu,
            [](view<const int, 1> a, view<long, 1> b) {
              for (index_t i = b.lo(0); i < b.hi(0); ++i) b(i) = static_cast<long>(a(i)) * a(i);
            })
        .on(gpu, {R"(GPU_KERNEL void stream_squares(GPU_IN(int, a), GPU_OUT(long, b)) {
                       const long i = GPU_LO(b, 0) + GPU_GLOBAL_ID(0);
                       if (i < GPU_HI(b, 0)) GPU_AT1(b, i) = (long)GPU_AT1(a, i) * GPU_AT1(a, i);
                     })",
                  "stream_squares"});

options with_sim() {
  options o;
  o.threads = 2;
  o.cost_cache = "none";
  o.devices.push_back({"sim", 0, 4});
  o.eager_devices = true;
  return o;
}

// Frames that are full of their number.
st::source<row> numbered(st::recycler<array<int, 1>> from, int count) {
  for (int i = 0; i < count; ++i) {
    row r = from.take();
    {
      auto at = r->write();
      for (index_t x = 0; x < width; ++x) at(x) = i;
    }
    co_yield std::move(r);
  }
}

// The value that all elements of a frame have; -1 if they differ.
template <class T>
long value_of(const array<T, 1>& a) {
  const auto at = a.read();
  for (index_t x = 0; x < width; ++x)
    if (at(x) != at(0)) return -1;
  return static_cast<long>(at(0));
}

class on_executors : public ::testing::TestWithParam<const char*> {
 public:
  static scope where() { return std::string(GetParam()) == "sim" ? scope::kind(device_kind::sim) : scope::cpu(); }
};
INSTANTIATE_TEST_SUITE_P(streams, on_executors, ::testing::Values("cores", "sim"),
                         [](const auto& of) { return std::string(of.param); });

TEST_P(on_executors, kernels_of_a_chain_work_on_each_frame_in_order) {
  runtime rt(with_sim());
  const auto ints = st::frames<int>(rt, {width});
  const auto longs = st::frames<long>(rt, {width});
  std::vector<long> got;
  auto p = st::from("numbers", numbered(ints, 200)) | st::kernel("add", add_in_place, {.where = where()}, 3) |
           st::kernel("square", squares, longs, {.where = where(), .in_flight = 4}) |
           st::sink("out", [&](const st::frame<long, 1>& f) { got.push_back(value_of(*f)); });
  auto r = p.start(rt);
  ASSERT_TRUE(test::ends(r));
  r.wait();
  ASSERT_EQ(got.size(), 200u);
  for (long i = 0; i < 200; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], (i + 3) * (i + 3));
  test::expect_balanced(r.report());
  EXPECT_EQ(r.report().stages.at(2).kind, "kernel");
  EXPECT_EQ(r.report().stages.at(2).out, 200u);
}

TEST_P(on_executors, batches_of_frames_go_through_kernels) {
  runtime rt(with_sim());
  const auto ints = st::frames<int>(rt, {width});
  const auto longs = st::frames<long>(rt, {width});
  std::vector<long> got;
  auto p = st::from("numbers", numbered(ints, 50)) | st::batch("batch", {.items = 8}) |
           st::kernel("add", add_in_place, {.where = where()}, 1) |
           st::kernel("square", squares, longs, {.where = where()}) | st::unbatch("rows") |
           st::sink("out", [&](const st::frame<long, 1>& f) { got.push_back(value_of(*f)); });
  auto r = p.start(rt);
  ASSERT_TRUE(test::ends(r));
  r.wait();
  ASSERT_EQ(got.size(), 50u);
  for (long i = 0; i < 50; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], (i + 1) * (i + 1));
  test::expect_balanced(r.report());
}

TEST(stream_tasks, arrays_are_items_too_and_a_function_may_spawn_any_number_of_tasks) {
  runtime rt;
  std::vector<long> got;
  auto p = st::from("numbers", std::views::iota(0, 40)) |
           st::map("array",
                   [&](int i) {
                     auto a = rt.filled<int>({width}, tiles(width), i);
                     return a;
                   }) |
           st::tasks("work",
                     [](st::spawner& on, array<int, 1>& a) {
                       for (int n = 0; n < 3; ++n) on.spawn(add_in_place, update(a), 1);
                       on.for_each(grid(width).chunks(64), add_in_place, update(a, one_to_one{}), 10);
                       on.spawn(
                           {.name = "last"}, [](view<int, 1> v) { v(0) += 0; }, update(a));
                     }) |
           st::sink("out", [&](const array<int, 1>& a) { got.push_back(value_of(a)); });
  auto r = p.start(rt);
  ASSERT_TRUE(test::ends(r));
  r.wait();
  ASSERT_EQ(got.size(), 40u);
  for (long i = 0; i < 40; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], i + 13);
}

TEST(stream_tasks, recorded_graphs_run_for_each_item) {
  runtime rt;
  const auto a = rt.filled<int>({width}, tiles(width), 0);
  const graph g = rt.record([&](recorder& rec) {
    rec.spawn(add_in_place, update(a), 1);
    rec.spawn(add_in_place, update(a), 1);
  });
  auto p = st::from("numbers", std::views::iota(0, 25)) | st::tasks("run", [g](st::spawner& on, int&) { on.run(g); }) |
           st::sink("out", [](int) {});
  auto r = p.start(rt);
  ASSERT_TRUE(test::ends(r));
  r.wait();
  EXPECT_EQ(value_of(a), 50);
}

TEST(stream_tasks, a_stage_whose_function_spawns_nothing_passes_items_on) {
  runtime rt;
  std::vector<int> got;
  auto p = st::from("numbers", std::views::iota(0, 1000)) |
           st::tasks("twice", [](st::spawner&, const int& i) { return 2 * i; }) |
           st::sink("out", [&](int i) { got.push_back(i); });
  auto r = p.start(rt);
  ASSERT_TRUE(test::ends(r));
  r.wait();
  ASSERT_EQ(got.size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], 2 * i);
}

// Tasks that wait until they are let go.
struct held_tasks {
  test::gate open;
  std::atomic<int> begun{0}, at_once{0}, most{0};
  void body() {
    ++begun;
    const int now = ++at_once;
    for (int m = most; now > m && !most.compare_exchange_weak(m, now);) {
    }
    static_cast<void>(open.pass());
    --at_once;
  }
};

TEST(stream_tasks, at_most_so_many_items_are_in_flight) {
  options o;
  o.threads = 4;
  runtime rt(o);
  held_tasks tasks;
  std::atomic<int> pushed{0};
  auto p = st::from("numbers",
                    [&, n = 0]() mutable -> std::optional<int> {
                      ++pushed;
                      return n++ < 30 ? std::optional<int>(n) : std::nullopt;
                    }) |
           st::tasks("held", [&](st::spawner& on, int&) { on.spawn([&tasks] { tasks.body(); }); },
                     {.in_flight = 2, .edge = {.items = 4}}) |
           st::sink("out", [](int) {});
  auto r = p.start(rt);
  ASSERT_TRUE(test::comes_true([&] { return tasks.begun == 2; }));
  // Two in the stage and four in the edge.
  ASSERT_TRUE(test::comes_true([&] { return pushed == 6; }));
  test::expect_balanced(r.report());
  EXPECT_EQ(r.report().stages.at(1).held, 2u);
  EXPECT_EQ(tasks.begun, 2);
  tasks.open.open();
  ASSERT_TRUE(test::ends(r));
  r.wait();
  EXPECT_EQ(tasks.begun, 30);
  EXPECT_LE(tasks.most, 2);
}

TEST(stream_tasks, what_takes_long_holds_others_back_only_where_the_order_is_kept) {
  for (const st::order how : {st::ordered, st::unordered}) {
    options o;
    o.threads = 4;
    runtime rt(o);
    test::gate open;
    std::vector<int> got;
    std::atomic<int> others{0};
    auto p = st::from("numbers", std::views::iota(0, 8)) |
             st::tasks("first_is_slow",
                       [&](st::spawner& on, int& i) {
                         on.spawn([&, i] {
                           if (i == 0)
                             static_cast<void>(open.pass());
                           else
                             ++others;
                         });
                       },
                       {.in_flight = 8, .order = how}) |
             st::sink("out", [&](int i) {
               got.push_back(i);
               if (got.size() == 7 && how == st::unordered) open.open();
             });
    auto r = p.start(rt);
    ASSERT_TRUE(test::comes_true([&] { return others == 7; }));
    if (how == st::ordered) open.open();  // in the other case the sink does, which has all others by then
    ASSERT_TRUE(test::ends(r));
    r.wait();
    ASSERT_EQ(got.size(), 8u);
    EXPECT_EQ(how == st::ordered ? got.front() : got.back(), 0);
    std::sort(got.begin(), got.end());
    for (int i = 0; i < 8; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], i);
  }
}

TEST(stream_tasks, a_task_that_fails_fails_the_stream_with_its_stage_and_item) {
  runtime rt;
  auto p = st::from("numbers", std::views::iota(0, 100)) |
           st::tasks("odd",
                     [](st::spawner& on, int& i) {
                       on.spawn([i] {
                         if (i == 37) throw std::runtime_error("thirty-seven");
                       });
                     }) |
           st::sink("out", [](int) {});
  auto r = p.start(rt);
  ASSERT_TRUE(test::ends(r));
  try {
    r.wait();
    FAIL() << "nothing was thrown";
  } catch (const st::stage_failed& e) {
    EXPECT_EQ(e.stage(), "odd");
    EXPECT_EQ(e.item(), 37u);
    EXPECT_NE(std::string(e.what()).find("thirty-seven"), std::string::npos) << e.what();
  }
  const st::report told = r.report();
  test::expect_balanced(told);
  EXPECT_EQ(told.items.delivered, 37u);
}

TEST(stream_tasks, an_item_whose_tasks_fail_is_tried_again_and_then_given_up) {
  runtime rt;
  std::vector<int> got, dead;
  std::atomic<int> calls{0};
  auto p = st::from("numbers", std::views::iota(0, 20)) |
           st::tasks("flaky",
                     [&calls, tries = std::vector<int>(20)](st::spawner& on, int& i) mutable {
                       const int n = tries[static_cast<std::size_t>(i)]++;
                       ++calls;
                       if (i == 3 && n == 0) throw std::runtime_error("at once");
                       on.spawn([i, n] {
                         if (i == 7 && n < 2) throw std::runtime_error("later");
                         if (i == 11) throw std::runtime_error("always");
                       });
                       return 10 * i;
                     },
                     {.fail = st::retry(2, 1ms).then(st::dead_letter)}) |
           st::sink("out", [&](int i) { got.push_back(i); });
  st::start_options o;
  o.on_dead_letter = [&](const st::letter& l) {
    EXPECT_EQ(l.stage, "flaky");
    EXPECT_EQ(l.attempts, 3);
    ASSERT_TRUE(l.as<int>());
    dead.push_back(*l.as<int>());
  };
  auto r = p.start(rt, o);
  ASSERT_TRUE(test::ends(r));
  r.wait();
  EXPECT_EQ(dead, std::vector<int>{11});
  std::vector<int> wanted;
  for (int i = 0; i < 20; ++i)
    if (i != 11) wanted.push_back(10 * i);
  EXPECT_EQ(got, wanted);  // in order, retries or not
  const st::report told = r.report();
  test::expect_balanced(told);
  EXPECT_EQ(told.items.dead, 1u);
  EXPECT_EQ(told.stages.at(1).retries, 5u);
  EXPECT_EQ(calls, 25);
}

TEST(stream_tasks, what_fails_is_dropped_where_the_stage_says_so) {
  runtime rt;
  auto p = st::from("numbers", std::views::iota(0, 100)) |
           st::tasks("thirds",
                     [](st::spawner& on, int& i) {
                       on.spawn([i] {
                         if (i % 3 == 0) throw std::runtime_error("a third");
                       });
                     },
                     {.in_flight = 5, .order = st::unordered, .fail = st::drop}) |
           st::sink("out", [](int) {});
  auto r = p.start(rt);
  ASSERT_TRUE(test::ends(r));
  r.wait();
  const st::report told = r.report();
  test::expect_balanced(told);
  EXPECT_EQ(told.items.dropped, 34u);
  EXPECT_EQ(told.items.delivered, 66u);
}

TEST(stream_tasks, tasks_that_have_not_begun_are_left_out_when_the_stream_ends_early) {
  options o;
  o.threads = 2;
  runtime rt(o);
  test::gate open;
  std::atomic<int> begun{0}, later{0};
  const auto blocked = rt.filled<int>({1}, tiles(1), 0);
  {
    auto p = st::from("numbers", std::views::iota(0, 100)) |
             st::tasks("held",
                       [&](st::spawner& on, int&) {
                         on.spawn(
                             [&](view<int, 1>) {
                               ++begun;
                               static_cast<void>(open.pass());
                             },
                             update(blocked));
                         on.spawn([&](view<int, 1>) { ++later; }, update(blocked));
                       },
                       {.in_flight = 8}) |
             st::sink("out", [](int) {});
    auto r = p.start(rt);
    ASSERT_TRUE(test::comes_true([&] { return begun == 1; }));
    r.cancel();
    open.open();
  }  // waits for the task that runs
  EXPECT_EQ(begun, 1);
  EXPECT_EQ(later, 0);
}

TEST(stream_tasks, watermarks_do_not_overtake_what_is_in_flight) {
  for (const st::order how : {st::ordered, st::unordered}) {
    runtime rt;
    std::vector<std::pair<std::int64_t, std::uint64_t>> got;
    auto p = st::from("numbers", std::views::iota(0, 1000)) |
             st::event_time("time", [](int i) { return std::int64_t{i}; }) |
             st::tasks("work",
                       [](st::spawner& on, int& i) {
                         on.spawn([i] {
                           volatile int spin = (i * 7919) % 1000;
                           while (spin > 0) spin = spin - 1;
                         });
                       },
                       {.in_flight = 16, .order = how}) |
             st::window("tens", st::tumbling(10ns), {}, st::count()) |
             st::sink("out", [&](const st::windowed<st::all_items, std::uint64_t>& w) {
               got.emplace_back(w.window.begin.time_since_epoch().count(), w.value);
             });
    auto r = p.start(rt);
    ASSERT_TRUE(test::ends(r));
    r.wait();
    ASSERT_EQ(got.size(), 100u);
    for (std::size_t i = 0; i < 100; ++i)
      EXPECT_EQ(got[i], std::make_pair(std::int64_t{10} * static_cast<long>(i), std::uint64_t{10}));
    EXPECT_EQ(r.report().stages.at(3).late, 0u);
  }
}

TEST(stream_tasks, frames_are_used_again) {
  runtime rt;
  const auto ints = st::frames<int>(rt, {width}, 16);
  auto p = st::from("numbers", numbered(ints, 500)) | st::kernel("add", add_in_place, {.edge = {.items = 4}}, 1) |
           st::sink("out", [](const row&) {});
  auto r = p.start(rt);
  ASSERT_TRUE(test::ends(r));
  r.wait();
  // Edge, stage, and the hands of three: no more frames were ever made than are kept.
  EXPECT_LE(rt.report().arrays, 16u);
}

TEST(stream_tasks, options_that_make_no_sense_are_refused_with_the_stages_name) {
  runtime rt;
  for (const int n : {0, -1, 1025}) {
    try {
      static_cast<void>(st::from("numbers", std::views::iota(0, 3)) |
                        st::tasks("bad", [](st::spawner&, int&) {}, {.in_flight = n}));
      ADD_FAILURE() << n;
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::bad_argument);
      EXPECT_NE(std::string(e.what()).find("'bad'"), std::string::npos) << e.what();
    }
  }
}

TEST(stream_tasks, a_scope_that_no_executor_fits_fails_the_stream) {
  runtime rt;
  const auto ints = st::frames<int>(rt, {width});
  auto p = st::from("numbers", numbered(ints, 3)) | st::kernel("add", add_in_place, {.where = scope::gpu()}, 1) |
           st::sink("out", [](const row&) {});
  auto r = p.start(rt);
  ASSERT_TRUE(test::ends(r));
  EXPECT_THROW(r.wait(), st::stage_failed);
}

TEST(stream_tasks, a_runtime_that_goes_first_ends_the_stream) {
  std::optional<runtime> rt(std::in_place);
  std::atomic<int> done{0};
  auto p = st::from("numbers", std::views::iota(0)) |
           st::tasks("work", [&](st::spawner& on, int&) { on.spawn([&] { ++done; }); }) | st::sink("out", [](int) {});
  auto r = p.start(*rt);
  ASSERT_TRUE(test::comes_true([&] { return done > 10; }));
  rt.reset();
  ASSERT_TRUE(test::ends(r));
  try {
    r.wait();
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::runtime_stopped);
  }
}

TEST(stream_tasks, an_item_may_have_any_number_of_tasks) {
  runtime rt;
  std::atomic<int> done{0};
  auto p = st::from("numbers", std::views::iota(0, 2)) |
           st::tasks("many",
                     [&](st::spawner& on, int&) {
                       for (int n = 0; n < 70'000; ++n) on.spawn([&] { ++done; });
                     }) |
           st::sink("out", [](int) {});
  auto r = p.start(rt);
  r.wait();
  EXPECT_EQ(done, 140'000);
}

TEST(stream_tasks, tasks_that_update_in_place_have_retries_of_their_own) {
  runtime rt;
  std::atomic<int> calls{0};
  auto p = st::from("numbers", std::views::iota(0, 10)) |
           st::map("array", [&](int i) { return rt.filled<int>({width}, tiles(width), i); }) |
           st::tasks("flaky",
                     [&](st::spawner& on, array<int, 1>& a) {
                       on.spawn(
                           [&](view<int, 1> v) {
                             for (index_t x = 0; x < width; ++x) v(x) += 1;
                             if (++calls % 3 == 1) throw std::runtime_error("once in three");
                           },
                           update(a));
                     },
                     {.retries = 3}) |
           st::sink("out", [n = 0](const array<int, 1>& a) mutable { EXPECT_EQ(value_of(a), ++n); });
  auto r = p.start(rt);
  r.wait();
  EXPECT_GT(calls, 10);
  EXPECT_EQ(r.report().items.delivered, 10u);
}

TEST(stream_tasks, watermarks_stay_behind_what_has_no_room_behind_the_stage) {
  runtime rt;
  std::map<std::int64_t, std::uint64_t> got;
  // A watermark comes behind each 64th item, which is a little older than it says: in time only while it is before it.
  constexpr int count = 640;
  const auto time_of = [](int i) { return std::int64_t{i % 64 == 63 ? i - 3 : i}; };
  auto p =
      st::from("numbers", std::views::iota(0, count)) | st::event_time("time", time_of) |
      st::tasks("work", [](st::spawner& on, int& i) { on.spawn([i] { static_cast<void>(i); }); }, {.in_flight = 4}) |
      st::flat_map("copies", [](int i) { return std::vector<int>(7, i); }) | st::async({.items = 2}) |
      st::window("each", st::tumbling(1ns), {}, st::count()) |
      st::sink("out", [&](const st::windowed<st::all_items, std::uint64_t>& w) {
        got[w.window.begin.time_since_epoch().count()] += w.value;
      });
  auto r = p.start(rt);
  ASSERT_TRUE(test::ends(r));
  r.wait();
  test::expect_balanced(r.report());
  EXPECT_EQ(r.report().items.dropped, 0u);
  std::map<std::int64_t, std::uint64_t> wanted;
  for (int i = 0; i < count; ++i) wanted[time_of(i)] += 7;
  EXPECT_EQ(got, wanted);
}

TEST(stream_tasks, what_has_no_room_behind_a_state_is_not_lost) {
  runtime rt;
  std::uint64_t got = 0, calls = 0;
  auto p = st::from("numbers", std::views::iota(0, 6400)) |
           st::event_time("time", [](int i) { return std::int64_t{i}; }) |
           st::tasks("work", [](st::spawner& on, int& i) { on.spawn([i] { static_cast<void>(i); }); }) |
           st::process<std::string>(
               "texts", 0,
               [](auto& c, int&, int i) {
                 c.emit(std::string(static_cast<std::size_t>(i % 50 + 1), 'x'));
                 c.wake_at(c.time());
               },
               [&](auto& c, int&) {
                 ++calls;
                 c.emit(std::string(40, 'y'));
               }) |
           st::async({.items = 4, .bytes = 200}) | st::sink("out", [&](const std::string&) { ++got; });
  auto r = p.start(rt);
  ASSERT_TRUE(test::ends(r));
  r.wait();
  const st::report told = r.report();
  test::expect_balanced(told);
  EXPECT_EQ(told.items.in_flight, 0u) << told.text();
  EXPECT_GE(calls, 50u);  // a watermark each 64 items, or a little later
  EXPECT_EQ(got, 6400u + calls);
}

TEST(stream_tasks, graphs_run_in_a_stage_whose_tasks_have_retries) {
  runtime rt;
  const auto a = rt.filled<int>({width}, tiles(width), 0);
  const graph g = rt.record([&](recorder& rec) { rec.spawn(add_in_place, update(a), 1); });
  auto p = st::from("numbers", std::views::iota(0, 5)) |
           st::tasks("run", [g](st::spawner& on, int&) { on.run(g); }, {.retries = 2}) | st::sink("out", [](int) {});
  p.start(rt).wait();
  EXPECT_EQ(value_of(a), 5);
}

TEST(stream_tasks, items_are_there_as_long_as_tasks_that_use_them_even_if_the_stream_is_left_behind) {
  options o;
  o.threads = 2;
  runtime rt(o);
  test::gate begun, open;
  std::atomic<int> seen{0};
  {
    std::optional<st::running> r;
    // The handle goes in a stage of its own stream, where nothing is waited for.
    auto p = st::from("texts", std::vector<std::string>{std::string(1000, 'x'), "last"}) |
             st::tasks("use",
                       [&](st::spawner& on, std::string& text) {
                         if (text == "last") return;
                         on.spawn([&] {
                           begun.open();
                           static_cast<void>(open.pass());
                           seen = static_cast<int>(text.size());
                         });
                       },
                       {.in_flight = 2, .order = st::unordered}) |
             st::sink("out", [&](const std::string&) {
               static_cast<void>(begun.pass());
               r.reset();
             });
    r.emplace(p.start(rt));
    ASSERT_TRUE(begun.pass());
    ASSERT_TRUE(test::comes_true([&] { return !st::reports(rt).empty(); }));
    while (r && r->report().state == st::state::runs) std::this_thread::yield();
  }
  open.open();
  ASSERT_TRUE(test::comes_true([&] { return seen == 1000; }));
}

}  // namespace
