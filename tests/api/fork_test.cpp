// What this file is for: a child by fork is told at once that a runtime is its parent's, and gets rid of it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include <gtest/gtest.h>
#include <troupe/stream.hpp>
#include <troupe/troupe.hpp>

#include "tests/api/gates.hpp"
#include "tests/support/sanitizers.hpp"

namespace {

using namespace std::chrono_literals;
using test::code_of;
using test::gate;
using troupe::errc;

// Returns the exit code of a child of this process; -1 for one that had to be killed.
int code_of_child(const std::function<int()>& f) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    int code = 99;
    try {
      code = f();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "child: %s\n", e.what());
    }
    ::_exit(code);
  }
  const auto give_up = std::chrono::steady_clock::now() + test::patience;
  for (int status = 0;;) {
    if (::waitpid(child, &status, WNOHANG) == child) return WIFEXITED(status) ? WEXITSTATUS(status) : -2;
    if (std::chrono::steady_clock::now() > give_up) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      return -1;
    }
    std::this_thread::sleep_for(1ms);
  }
}

troupe::options with_everything() {
  troupe::options o{.threads = 2, .core_groups = 2};
  o.devices = {{.name = "sim:0"}};
  o.cost_cache = "none";
  o.cluster.cluster_name = "forks";
  o.cluster.listen = {"127.0.0.1:0"};
  o.cluster.insecure_loopback = true;
  return o;
}

TEST(fork, a_child_that_destroys_its_parents_runtime_goes_on_at_once) {
  for (int round = 0; round < 20; ++round) {
    auto rt = std::make_unique<troupe::runtime>(with_everything());
    gate go;
    const test::opener at_the_end(go);
    auto array = std::make_optional(rt->filled<int>({1000}, troupe::tiles(10), 1));
    auto running = std::make_optional(rt->spawn([&] { return go.pass(); }));
    std::optional view(array->read());
    EXPECT_EQ(code_of_child([&] {
                view.reset();
                running.reset();
                array.reset();
                rt.reset();
                return 5;
              }),
              5);
    go.open();
    EXPECT_TRUE(running->get());
    EXPECT_EQ((*view)(999), 1);
  }
}

// While threads of the parent hold whatever they hold at that moment.
TEST(fork, a_child_that_destroys_a_busy_runtime_goes_on_at_once) {
  auto rt = std::make_unique<troupe::runtime>(troupe::options{.threads = 3});
  std::atomic<bool> over{false};
  std::thread spawns([&] {
    while (!over) rt->spawn([] {});
  });
  for (int round = 0; round < 50; ++round) {
    auto array = std::make_optional(rt->filled<int>({100}, troupe::tiles(10), 1));
    auto done = std::make_optional(rt->spawn([](troupe::view<const int, 1> v) { return v(0); }, read(*array)));
    EXPECT_EQ(code_of_child([&] {
                done.reset();
                array.reset();
                rt.reset();
                return 5;
              }),
              5);
  }
  over = true;
  spawns.join();
}

TEST(fork, a_child_that_uses_its_parents_runtime_is_told_at_once) {
  troupe::runtime rt(with_everything());
  auto a = rt.filled<int>({4}, troupe::tiles(4), 1);
  auto g = rt.record([&](troupe::recorder& r) { r.spawn([](troupe::view<int, 1> v) { v(0) = 2; }, update(a)); });
  gate go;
  const test::opener at_the_end(go);
  auto running = rt.spawn([&] { return go.pass(); });
  auto done = rt.spawn([] { return 6; });
  done.wait();
  const std::function<void()> uses[] = {
      [&] { rt.spawn([] {}); },
      [&] {
        rt.for_each(
            troupe::grid(4), [](troupe::view<int, 1>) {}, update(a));
      },
      [&] { rt.array<int>({4}, troupe::tiles(4)); },
      [&] { rt.filled<int>({4}, troupe::tiles(4), 1); },
      [&] { rt.record([](troupe::recorder&) {}); },
      [&] { rt.run(g); },
      [&] { rt.wait_all(); },
      [&] { (void)rt.wait_all_for(1s); },
      [&] { (void)rt.report(); },
      [&] { (void)rt.executors(); },
      [&] { (void)rt.explain(done); },
      [&] { (void)rt.nodes(); },
      [&] { (void)rt.query_cluster(1s); },
      [&] { (void)rt.wait_for_nodes(1, 1000ms); },
      [&] { (void)rt.addresses(); },
      [&] { rt.shutdown(1s); },
      [&] { (void)running.get(); },
      [&] { running.wait(); },
      [&] { (void)running.wait_for(1s); },
      [&] { running.then([](bool) {}); },
      [&] { done.then([](int) {}); },
      [&] { (void)a.read(); },
      [&] { (void)a.write(); },
      [&] { (void)a.try_read_for(1s); },
  };
  EXPECT_EQ(code_of_child([&] {
              int n = 0;
              for (const auto& use : uses) {
                ++n;
                if (code_of(use) != errc::runtime_stopped) return n;
              }
              return done.get() == 6 && !running.is_ready() ? 0 : 50;
            }),
            0);
  go.open();
  EXPECT_TRUE(running.get());
}

TEST(fork, a_child_that_uses_a_stream_of_its_parents_is_told_at_once) {
  namespace st = troupe::stream;
  troupe::runtime rt({.threads = 2});
  std::atomic<int> sum{0};
  auto p = st::from<int>("in", {.items = 1}) | st::sink("sum", [&](int n) { sum += n; });
  std::optional r(p.start(rt));
  auto in = r->input<int>("in");
  EXPECT_EQ(in.push(1), st::pushed::ok);
  const std::function<void()> uses[] = {
      [&] { r->wait(); },  [&] { (void)r->wait_for(60s); }, [&] { (void)r->drain(60s); }, [&] { r->barrier(60s); },
      [&] { in.push(1); }, [&] { in.try_push(1); },         [&] { (void)p.start(rt); },
  };
  EXPECT_EQ(code_of_child([&] {
              int n = 0;
              for (const auto& use : uses) {
                ++n;
                if (code_of(use) != errc::runtime_stopped) return n;
              }
              r.reset();
              return 0;
            }),
            0);
  EXPECT_EQ(in.push(2), st::pushed::ok);
  in.close();
  r->wait();
  EXPECT_EQ(sum, 3);
}

TEST(fork, a_child_may_have_a_runtime_of_its_own) {
  if (test::sanitizers == "thread") GTEST_SKIP() << "ThreadSanitizer ends children that make threads";
  troupe::runtime rt({.threads = 2});
  EXPECT_EQ(rt.spawn([] { return 1; }).get(), 1);
  EXPECT_EQ(code_of_child([] {
              troupe::runtime own({.threads = 2});
              auto a = own.filled<int>({100}, troupe::tiles(10), 1);
              own.for_each(
                  troupe::grid(100),
                  [](troupe::view<int, 1> v) {
                    for (auto i = v.lo(0); i < v.hi(0); ++i) v(i) += 1;
                  },
                  update(a));
              return own.spawn([](troupe::view<const int, 1> v) { return v(99); }, read(a)).get();
            }),
            2);
  EXPECT_EQ(rt.spawn([] { return 3; }).get(), 3);
}

}  // namespace
