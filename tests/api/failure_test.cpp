// What this file is for: what a failing, retried or cancelled task does to others, and what it does not.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

#include <troupe/troupe.hpp>

#include "gates.hpp"

namespace {

using namespace troupe;
using test::code_of;
using test::error_of;
using test::gate;
using troupe::index_t;

struct boom : std::runtime_error {
  boom() : std::runtime_error("boom 42") {}
};

void fail(view<int, 1>) { throw boom(); }

void set_all(view<int, 1> v, int value) {
  for (index_t i = v.lo(0); i < v.hi(0); ++i) v(i) = value;
}

TEST(failure, names_the_task_its_executor_and_the_cause) {
  runtime rt(options{.threads = 1});
  auto f = rt.spawn(task_options{.name = "bad one"}, []() -> int { throw boom(); });
  const auto e = error_of([&] { f.get(); });
  ASSERT_TRUE(e && e->from_task);
  EXPECT_EQ(e->code, errc::task_failed);
  EXPECT_EQ(e->task, "bad one");
  EXPECT_EQ(e->root, "bad one");
  EXPECT_EQ(e->executor, "cpu:0");
  EXPECT_EQ(e->attempts, 1);
  EXPECT_EQ(e->cause_text(), "boom 42");
  EXPECT_TRUE(e->says("bad one") && e->says("cpu:0") && e->says("boom 42")) << e->text;
  EXPECT_TRUE(f.is_ready());
  EXPECT_NO_THROW(f.wait());
}

TEST(failure, keeps_the_type_of_what_was_thrown) {
  runtime rt(options{.threads = 1});
  auto f = rt.spawn([] { throw boom(); });
  try {
    f.get();
    FAIL() << "nothing was thrown";
  } catch (const task_failed& e) {
    EXPECT_THROW(e.rethrow_cause(), boom);
  }
  auto odd = rt.spawn([] { throw 7; });
  try {
    odd.get();
    FAIL() << "nothing was thrown";
  } catch (const task_failed& e) {
    EXPECT_THROW(e.rethrow_cause(), int);
  }
}

struct without_a_text : std::exception {
  const char* what() const noexcept override { return nullptr; }
};

TEST(failure, may_be_anything_that_can_be_thrown) {
  runtime rt(options{.threads = 2});
  const auto cause_of = [](const future<void>& f) {
    const auto e = error_of([&] { f.get(); });
    return e && e->code == errc::task_failed ? e->text.substr(e->text.rfind(": ") + 2) : "no failure";
  };
  EXPECT_EQ(cause_of(rt.spawn([] { throw nullptr; })), "a null pointer");
  EXPECT_EQ(cause_of(rt.spawn([] { throw static_cast<const char*>(nullptr); })), "a null pointer");
  EXPECT_EQ(cause_of(rt.spawn([] { throw "some words"; })), "some words");
  EXPECT_EQ(cause_of(rt.spawn([] { throw without_a_text(); })), "an exception without a text");
  EXPECT_EQ(cause_of(rt.spawn([] { throw 42; })), "an exception that is not a std::exception");
  const graph g = rt.record([](recorder& r) { r.spawn([] { throw nullptr; }); });
  EXPECT_EQ(cause_of(rt.run(g)), "a null pointer");
}

TEST(failure, of_a_kernel_carries_the_name_of_the_kernel) {
  static constexpr auto cursed = kernel<inout<int, 1>>("cursed").on(cpu, fail);
  runtime rt(options{.threads = 2});
  auto a = rt.filled<int>({4}, tiles(2), 0, "a");
  const auto spawned = error_of([&] { rt.spawn(cursed, update(a)).get(); });
  ASSERT_TRUE(spawned);
  EXPECT_EQ(spawned->task, "cursed");
  auto b = rt.filled<int>({4}, tiles(2), 0, "b");
  const auto chunked = error_of([&] { rt.for_each(grid(4), cursed, update(b)).get(); });
  ASSERT_TRUE(chunked);
  EXPECT_EQ(chunked->root, "cursed");
  EXPECT_TRUE(chunked->says("boom 42")) << chunked->text;
}

TEST(failure, poisons_dependants_which_name_the_root) {
  runtime rt(options{.threads = 2});
  auto a = rt.filled<int>({4}, tiles(4), 0, "a");
  auto b = rt.array<int>({4}, tiles(4), "b");
  std::atomic<int> ran{0};
  auto bad = rt.spawn(task_options{.name = "root of evil"}, fail, update(a));
  auto child = rt.spawn(
      task_options{.name = "child"}, [&](view<const int, 1>, view<int, 1>) { ++ran; }, read(a), write(b));
  auto grandchild = rt.spawn(
      task_options{.name = "grandchild"}, [&](view<const int, 1>) { ++ran; }, read(b));
  auto by_future = rt.spawn(
      task_options{.name = "by future"}, [&] { ++ran; }, grandchild);

  const auto of_child = error_of([&] { child.get(); });
  ASSERT_TRUE(of_child && of_child->from_task);
  EXPECT_EQ(of_child->code, errc::dependency_failed);
  EXPECT_EQ(of_child->task, "child");
  EXPECT_EQ(of_child->root, "root of evil");
  EXPECT_EQ(of_child->cause_text(), "boom 42");
  EXPECT_TRUE(of_child->says("child") && of_child->says("root of evil") && of_child->says("boom 42")) << of_child->text;
  for (const auto& [f, name] : {std::pair{grandchild, "grandchild"}, std::pair{by_future, "by future"}}) {
    const auto e = error_of([&] { f.get(); });
    ASSERT_TRUE(e) << name;
    EXPECT_EQ(e->code, errc::dependency_failed);
    EXPECT_EQ(e->task, name);
    EXPECT_EQ(e->root, "root of evil");
  }
  EXPECT_EQ(error_of([&] { bad.get(); })->code, errc::task_failed);
  EXPECT_EQ(ran, 0);
}

TEST(failure, leaves_unrelated_tasks_and_the_runtime_alone) {
  runtime rt(options{.threads = 1});
  auto a = rt.filled<int>({4}, tiles(4), 0, "a");
  auto bad = rt.spawn(fail, update(a));
  auto good = rt.spawn([] { return 3; });
  EXPECT_EQ(good.get(), 3);
  bad.wait();
  auto b = rt.filled<int>({4}, tiles(4), 8, "b");
  EXPECT_EQ(rt.spawn([](view<const int, 1> v) { return v(2); }, read(b)).get(), 8);
  EXPECT_NO_THROW(rt.wait_all());
}

TEST(failure, of_a_sink_leaves_what_it_read_readable) {
  runtime rt(options{.threads = 2});
  auto source = rt.array<int>({4}, tiles(4), "source");
  auto sink = rt.array<int>({4}, tiles(4), "sink");
  auto first = rt.spawn([](view<int, 1> v) { set_all(v, 5); }, write(source));
  auto bad = rt.spawn([](view<const int, 1>, view<int, 1>) { throw boom(); }, read(source), write(sink));
  bad.wait();
  EXPECT_NO_THROW(first.get());
  EXPECT_EQ(source.read()(3), 5);
  const auto e = error_of([&] { sink.read(); });
  ASSERT_TRUE(e && e->from_task);
  EXPECT_TRUE(e->says("boom 42")) << e->text;
}

TEST(failure, is_healed_by_writing_everything_again) {
  runtime rt(options{.threads = 2});
  auto a = rt.filled<int>({10}, tiles(5), 0, "a");
  rt.spawn(fail, update(a)).wait();
  EXPECT_TRUE(code_of([&] { a.read(); }));
  EXPECT_EQ(code_of([&] { rt.spawn([](view<int, 1>) {}, update(a)).get(); }), errc::dependency_failed);
  auto healed = rt.spawn([](view<int, 1> v) { set_all(v, 9); }, write(a));
  EXPECT_NO_THROW(healed.get());
  EXPECT_EQ(a.read()(9), 9);
  rt.spawn(fail, update(a)).wait();
  {
    auto again = a.write();
    for (index_t i = 0; i < 10; ++i) again(i) = 4;
  }
  EXPECT_EQ(rt.spawn([](view<const int, 1> v) { return v(0) + v(9); }, read(a)).get(), 8);
}

TEST(failure, in_one_box_leaves_the_others_readable) {
  runtime rt(options{.threads = 2});
  auto a = rt.filled<int>({10}, tiles(5), 6, "a");
  rt.spawn(fail, update(a.sub({{5}, {8}}))).wait();
  EXPECT_EQ(a.sub({{0}, {5}}).read()(0), 6);
  EXPECT_EQ(a.sub({{8}, {10}}).read()(1), 6);
  EXPECT_TRUE(code_of([&] { a.sub({{7}, {9}}).read(); }));
}

TEST(failure, of_one_chunk_is_that_of_the_whole_call) {
  runtime rt(options{.threads = 2});
  auto a = rt.array<int>({12}, tiles(3), "a");
  auto done = rt.for_each(
      task_options{.name = "chunky"}, grid(12),
      [](view<int, 1> v) {
        set_all(v, 1);
        if (v.lo(0) == 6) throw boom();
      },
      write(a));
  const auto e = error_of([&] { done.get(); });
  ASSERT_TRUE(e && e->from_task);
  EXPECT_EQ(e->root, "chunky");
  EXPECT_EQ(e->cause_text(), "boom 42");
  EXPECT_EQ(a.sub({{0}, {6}}).read()(5), 1);
}

// ---- retries --------------------------------------------------------------------------------------------------------

TEST(retry, of_a_kernel_that_may_run_once_is_refused) {
  runtime rt(options{.threads = 1});
  constexpr auto launch = kernel<>("launch").on(cpu, [] {}).once();
  EXPECT_EQ(test::code_of([&] { rt.spawn(task_options{.retries = 1}, launch); }), errc::bad_argument);
  EXPECT_NO_THROW(rt.spawn(launch).get());
}

TEST(retry, puts_back_what_the_body_updated_in_place) {
  runtime rt(options{.threads = 1});
  auto whole_tile = rt.filled<int>({4}, tiles(4), 10, "whole tile");
  auto pieces = rt.filled<int>({12}, tiles(4), 10, "pieces");
  const auto flaky = [](task_context& c, view<int, 1> v) {
    for (index_t i = v.lo(0); i < v.hi(0); ++i) v(i) += 1;
    if (c.attempt() <= 2) throw boom();
  };
  EXPECT_NO_THROW(rt.spawn(task_options{.retries = 2}, flaky, update(whole_tile)).get());
  EXPECT_NO_THROW(rt.spawn(task_options{.retries = 2}, flaky, update(pieces.sub({{2}, {11}}))).get());
  EXPECT_EQ(whole_tile.read()(3), 11);
  const auto seen = pieces.read();
  for (index_t i = 0; i < 12; ++i) ASSERT_EQ(seen(i), i < 2 || i == 11 ? 10 : 11) << i;
}

TEST(retry, gives_up_after_the_number_that_was_asked_for) {
  runtime rt(options{.threads = 1});
  std::atomic<int> tries{0};
  auto f = rt.spawn(task_options{.retries = 3, .name = "hopeless"}, [&] {
    ++tries;
    throw boom();
  });
  const auto e = error_of([&] { f.get(); });
  ASSERT_TRUE(e);
  EXPECT_EQ(tries, 4);
  EXPECT_EQ(e->attempts, 4);
}

TEST(retry, of_a_reduction_counts_once) {
  runtime rt(options{.threads = 1});
  auto sum = rt.filled<int>({1}, tiles(1), 100, "sum");
  rt.spawn(
        task_options{.retries = 1},
        [](task_context& c, view<int, 1> v) {
          v(0) += 5;
          if (c.attempt() == 1) throw boom();
        },
        reduce(sum))
      .get();
  EXPECT_EQ(sum.read()(0), 105);
}

// ---- cancellation ---------------------------------------------------------------------------------------------------

TEST(cancellation, of_a_queued_task_means_that_it_never_starts) {
  runtime rt(options{.threads = 1});
  gate go, busy;
  const test::opener always(go);
  std::stop_source stop;
  std::atomic<bool> started{false};
  auto running = rt.spawn([&] {
    busy.open();
    return go.pass();
  });
  ASSERT_TRUE(busy.pass());
  auto queued = rt.spawn(task_options{.name = "queued", .stop = stop.get_token()}, [&] { started = true; });
  auto after = rt.spawn(
      task_options{.name = "after"}, [] {}, queued);
  stop.request_stop();
  go.open();
  const auto e = error_of([&] { queued.get(); });
  ASSERT_TRUE(e && e->from_task);
  EXPECT_EQ(e->code, errc::cancelled);
  EXPECT_EQ(e->task, "queued");
  EXPECT_FALSE(e->cause);
  EXPECT_TRUE(running.get());
  const auto of_dependant = error_of([&] { after.get(); });
  ASSERT_TRUE(of_dependant);
  EXPECT_EQ(of_dependant->root, "queued");
  EXPECT_FALSE(started);
  EXPECT_EQ(rt.spawn([] { return 1; }).get(), 1);
}

TEST(cancellation, of_a_task_that_waits_for_data_does_not_disturb_the_data) {
  runtime rt(options{.threads = 2});
  gate go;
  const test::opener always(go);
  std::stop_source stop;
  auto a = rt.array<int>({4}, tiles(4), "a");
  rt.spawn([&](view<int, 1> v) { set_all(v, go.pass() ? 3 : -1); }, write(a));
  auto reader = rt.spawn(
      task_options{.stop = stop.get_token()}, [](view<const int, 1> v) { return v(0); }, read(a));
  stop.request_stop();
  go.open();
  EXPECT_EQ(code_of([&] { reader.get(); }), errc::cancelled);
  EXPECT_EQ(a.read()(0), 3);
}

TEST(cancellation, asked_for_before_the_call_holds_too) {
  runtime rt(options{.threads = 1});
  std::stop_source stop;
  stop.request_stop();
  std::atomic<bool> started{false};
  auto f = rt.spawn(task_options{.stop = stop.get_token()}, [&] { started = true; });
  EXPECT_EQ(code_of([&] { f.get(); }), errc::cancelled);
  EXPECT_FALSE(started);
}

TEST(cancellation, is_seen_by_a_running_task_and_the_next_one_runs_at_once) {
  runtime rt(options{.threads = 1});
  std::stop_source stop;
  gate busy;
  auto running = rt.spawn(task_options{.name = "long", .stop = stop.get_token()}, [&](task_context& c) {
    busy.open();
    const auto limit = std::chrono::steady_clock::now() + test::patience;
    while (!c.stop_requested())
      if (std::chrono::steady_clock::now() > limit) return;
    throw std::runtime_error("stopped as asked");
  });
  auto next = rt.spawn([] { return 2; });
  ASSERT_TRUE(busy.pass());
  EXPECT_FALSE(next.is_ready());
  stop.request_stop();
  EXPECT_EQ(next.get(), 2);
  const auto e = error_of([&] { running.get(); });
  ASSERT_TRUE(e && e->from_task);
  EXPECT_EQ(e->task, "long");
  EXPECT_EQ(e->cause_text(), "stopped as asked");
}

TEST(cancellation, of_a_call_stops_the_chunks_that_have_not_started) {
  runtime rt(options{.threads = 1});
  gate go;
  const test::opener always(go);
  std::stop_source stop;
  std::atomic<int> ran{0};
  auto a = rt.filled<int>({100}, tiles(1), 0, "a");
  auto blocker = rt.spawn([&](view<int, 1>) { return go.pass(); }, update(a));
  auto done = rt.for_each(
      task_options{.stop = stop.get_token()}, grid(100), [&](view<int, 1>) { ++ran; }, update(a));
  stop.request_stop();
  go.open();
  EXPECT_TRUE(blocker.get());
  EXPECT_TRUE(code_of([&] { done.get(); }));
  EXPECT_EQ(ran, 0);
  rt.wait_all();
}

TEST(cancellation, gives_back_every_slot_and_quantity) {
  runtime rt(options{.threads = 2, .resources = {{"io", 2}}});
  for (int round = 0; round < 50; ++round) {
    std::stop_source stop;
    std::vector<future<void>> tasks;
    for (int i = 0; i < 10; ++i)
      tasks.push_back(rt.spawn(task_options{.resources = {{"io", 1}}, .stop = stop.get_token()}, [] {}));
    stop.request_stop();
    for (auto& t : tasks) t.wait();
  }
  rt.wait_all();
  const auto free = rt.report().resources_free;
  const auto io = std::find_if(free.begin(), free.end(), [](const resource& r) { return r.name == "io"; });
  ASSERT_NE(io, free.end());
  EXPECT_EQ(io->amount, 2);
  test::meeting both(2);  // both workers are still there
  const task_options one{.resources = {{"io", 1}}};
  auto first = rt.spawn(one, [&] { return both.arrive_and_wait(); });
  auto second = rt.spawn(one, [&] { return both.arrive_and_wait(); });
  EXPECT_TRUE(first.get() && second.get());
}

}  // namespace
