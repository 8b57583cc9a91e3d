// What this file is for: streams drawn at random against a serial run of the same stages.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <troupe/stream.hpp>
#include <troupe/troupe.hpp>

#include "ledgers.hpp"
#include "tests/support/drawn_stream.hpp"

namespace {

namespace st = troupe::stream;
using test::expect_balanced;
using item = std::int64_t;
using items = std::vector<item>;

// One stream, drawn from a seed: beside its flow the items that must come out of it, worked out stage by stage.
class drawn {
 public:
  explicit drawn(std::uint64_t seed) : random_(seed) {}

  int number(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  bool happens(int percent) { return number(1, 100) <= percent; }
  std::string name(const char* kind) { return kind + std::to_string(++names_); }
  st::edge_options edge() {
    return {.items = static_cast<std::size_t>(number(1, 12)), .bytes = static_cast<std::size_t>(number(1, 200))};
  }

  struct part {
    st::flow<item> flow;
    items wanted;
    bool in_order = true;
  };

  part source() {
    items all(static_cast<std::size_t>(happens(10) ? 0 : number(1, 600)));
    for (item& i : all) i = number(-1000, 1000);
    switch (number(0, 3)) {
      case 0:
        return {st::from(name("range"), all), all};
      case 1:
        return {st::from(name("function"),
                         [all, at = std::size_t{0}]() mutable -> std::optional<item> {
                           if (at == all.size()) return {};
                           return all[at++];
                         }),
                all};
      case 2:
        return {st::from(name("coroutine"),
                         [](items from) -> st::source<item> {
                           for (std::size_t i = 0; i < from.size(); ++i) {
                             if (i % 97 == 13) co_await st::sleep(std::chrono::microseconds(i % 3 == 0 ? 0 : 50));
                             co_yield from[i];
                           }
                         }(all)),
                all};
      default: {
        const std::string at = name("input");
        pushes.emplace_back(at, all);
        return {st::from<item>(at, edge()), all};
      }
    }
  }

  part stage(part p) {
    items out;
    switch (number(0, 8)) {
      case 0:
      case 1: {
        const item k = number(1, 9);
        const int lanes = happens(50) ? number(2, 5) : 1, slow = happens(30) ? number(1, 20) : 0;
        const bool ordered = happens(70);
        for (const item i : p.wanted) out.push_back(i * k + 1);
        return {p.flow | st::map(name("map"),
                                 [k, slow](item i) {
                                   for (int s = 0; s < slow && i % 7 == 0; ++s) std::this_thread::yield();
                                   return i * k + 1;
                                 },
                                 {.parallel = lanes, .order = ordered ? st::ordered : st::unordered, .edge = edge()}),
                out, p.in_order && (ordered || lanes == 1)};
      }
      case 2: {
        const item k = number(2, 5);
        for (const item i : p.wanted)
          if (i % k != 0) out.push_back(i);
        return {p.flow | st::filter(name("filter"), [k](item i) { return i % k != 0; }), out, p.in_order};
      }
      case 3: {
        for (const item i : p.wanted)
          for (item j = 0; j < (i & 3); ++j) out.push_back(i + j);
        return {p.flow | st::flat_map(name("flat_map"),
                                      [](item i) {
                                        items made;
                                        for (item j = 0; j < (i & 3); ++j) made.push_back(i + j);
                                        return made;
                                      }),
                out, p.in_order};
      }
      case 4: {
        const st::batch_options o{.items = static_cast<std::size_t>(number(1, 20)),
                                  .delay = std::chrono::microseconds(number(0, 1) * 100)};
        return {p.flow | st::batch(name("batch"), o) | st::unbatch(name("unbatch")), p.wanted, p.in_order};
      }
      case 5:
        return {p.flow | st::map(name("pass"), [](item i) { return i; }) | st::async(edge()), p.wanted, p.in_order};
      case 6: {  // a copy to each, brought together again
        auto ways = p.flow | st::tee<2>(name("tee"));
        auto left = happens(50) ? ways[0] | st::async(edge()) : ways[0];
        out = p.wanted;
        out.insert(out.end(), p.wanted.begin(), p.wanted.end());
        return {st::merge(name("merge"), left, ways[1]), out, false};
      }
      case 7: {
        auto ways = p.flow | st::route<3>(name("route"), [](item i) { return static_cast<std::size_t>(i & 3); });
        for (const item i : p.wanted)
          if ((i & 3) != 3) out.push_back((i & 3) == 1 ? i + 5 : i);
        return {
            st::merge(name("merge"), ways[0], ways[1] | st::map(name("map"), [](item i) { return i + 5; }), ways[2]),
            out, false};
      }
      default: {  // some items fail once, some always
        const int lanes = happens(40) ? 3 : 1;
        auto tried = std::make_shared<std::pair<std::mutex, std::set<item>>>();
        for (const item i : p.wanted) {
          if (i % 11 == 5)
            ++dead;
          else
            out.push_back(i);
        }
        return {p.flow | st::map(name("flaky"),
                                 [tried](const item& i) {
                                   if (i % 11 == 5) throw std::runtime_error("never");
                                   if (i % 13 == 3) {
                                     const std::lock_guard hold(tried->first);
                                     if (tried->second.insert(i).second) throw std::runtime_error("not now");
                                   }
                                   return i;
                                 },
                                 {.parallel = lanes,
                                  .fail = st::retry(number(1, 4), std::chrono::microseconds(happens(50) ? 0 : 1))
                                              .then(st::dead_letter)}),
                out, p.in_order};
      }
    }
  }

  std::vector<std::pair<std::string, items>> pushes;
  std::uint64_t dead = 0;

 private:
  std::mt19937_64 random_;
  int names_ = 0;
};

void run(std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  drawn d(seed);
  troupe::runtime rt(troupe::options{.threads = d.number(1, 6)});
  items got;
  std::atomic<std::uint64_t> buried{0};
  drawn::part p = d.source();
  if (d.happens(30)) {
    drawn::part q = d.source();
    items both = p.wanted;
    both.insert(both.end(), q.wanted.begin(), q.wanted.end());
    p = {st::merge(d.name("merge"), p.flow, q.flow), both, false};
  }
  for (int n = d.number(0, 7); n > 0; --n) p = d.stage(std::move(p));
  auto whole = p.flow | st::sink("end", [&](item i) { got.push_back(i); });
  auto r = whole.start(rt, {.on_dead_letter = [&](const st::letter&) { ++buried; }});
  std::vector<std::thread> threads;
  for (const auto& [at, all] : d.pushes)
    threads.emplace_back([&r, &at = at, &all = all] {
      auto in = r.input<item>(at);
      for (const item i : all) EXPECT_EQ(in.push(i), st::pushed::ok);
      in.close();
    });
  const bool looks = d.happens(50);
  while (looks && !r.wait_for(std::chrono::microseconds(100))) {
    const st::report told = r.report();
    if (told.is_exact) expect_balanced(told);
  }
  for (auto& t : threads) t.join();
  ASSERT_TRUE(r.wait_for(test::patience)) << r.report().text();
  if (!p.in_order) {
    std::sort(got.begin(), got.end());
    std::sort(p.wanted.begin(), p.wanted.end());
  }
  EXPECT_EQ(got, p.wanted);
  const st::report told = r.report();
  expect_balanced(told);
  EXPECT_EQ(told.items.in_flight, 0u);
  EXPECT_EQ(told.items.dead, d.dead);
  EXPECT_EQ(buried, d.dead);
  EXPECT_EQ(told.items.delivered, got.size());
}

TEST(stream_property, streams_drawn_at_random_equal_a_serial_run) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    run(seed);
    if (HasFailure()) break;
  }
}
TEST(slow_stream_property, streams_drawn_at_random_equal_a_serial_run) {
  for (std::uint64_t seed = 1000; seed < 5000; ++seed) {
    run(seed);
    if (HasFailure()) break;
  }
}

// Streams of timed events, with windows, joins and states, on threads; barriers go through them meanwhile.
void run_timed(std::uint64_t seed) {
  SCOPED_TRACE("timed, seed " + std::to_string(seed));
  const auto yields = [] {
    thread_local std::uint32_t calls = 0;
    if (++calls % 7 == 0) std::this_thread::yield();
  };
  test::drawn_stream d(seed, yields);
  troupe::runtime rt(troupe::options{.threads = d.number(1, 6)});
  test::drawn_stream::part p = d.flow();
  test::events got;
  std::atomic<std::uint64_t> buried{0};
  auto whole = p.flow | st::map("last", [](test::event e) { return e; }) |
               st::async({.items = static_cast<std::size_t>(d.number(1, 8))}) |
               st::sink("end", [&](const test::event& e) { got.push_back(e); });
  auto r = whole.start(rt, {.on_dead_letter = [&](const st::letter&) { ++buried; }});
  std::vector<std::thread> threads;
  for (const auto& [at, all] : d.pushes)
    threads.emplace_back([&r, &at = at, &all = all] {
      auto in = r.input<test::event>(at);
      for (const test::event& e : all)
        if (in.push(e) == st::pushed::closed) break;
      in.close();
    });
  const bool has_barriers = d.happens(50);
  while (has_barriers && !r.wait_for(std::chrono::microseconds(100)))
    static_cast<void>(r.barrier(std::chrono::milliseconds(1)));
  for (auto& t : threads) t.join();
  ASSERT_TRUE(r.wait_for(test::patience)) << r.report().text();
  if (!p.in_order) {
    std::sort(got.begin(), got.end());
    std::sort(p.wanted.begin(), p.wanted.end());
  }
  const st::report told = r.report();
  EXPECT_EQ(got, p.wanted) << told.text();
  expect_balanced(told);
  EXPECT_EQ(told.items.in_flight, 0u);
  EXPECT_EQ(buried, d.dead);
}

TEST(stream_property, streams_of_timed_events_come_to_what_their_stages_make) {
  for (std::uint64_t seed = 1; seed <= 150 && !HasFailure(); ++seed) run_timed(seed);
}
TEST(slow_stream_property, streams_of_timed_events_come_to_what_their_stages_make) {
  for (std::uint64_t seed = 1000; seed < 5000 && !HasFailure(); ++seed) run_timed(seed);
}

// Streams that are stopped at a moment drawn at random: nothing is lost from the ledger, nothing comes twice.
TEST(stream_property, streams_that_are_stopped_at_any_moment_are_balanced) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto number = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
    troupe::runtime rt(troupe::options{.threads = number(1, 4)});
    items got;
    auto p = st::from("numbers", std::views::iota(item{0})) |
             st::map("a", [](item i) { return i; }, {.parallel = number(1, 3)}) | st::async({.items = 3}) |
             st::flat_map("b",
                          [](item i) {
                            return items{i, i};
                          }) |
             st::batch("c", {.items = 5}) | st::unbatch("d") | st::async({.items = 7}) |
             st::sink("end", [&](item i) { got.push_back(i); });
    auto r = p.start(rt);
    std::this_thread::sleep_for(std::chrono::microseconds(number(0, 2000)));  // not for anything: any moment will do
    if (number(0, 1) == 0) {
      r.cancel();
    } else {
      const st::report told = r.drain(test::patience);
      EXPECT_EQ(told.state, st::state::ended);
      EXPECT_EQ(told.items.in_flight, 0u);
      EXPECT_EQ(got.size(), 2 * told.items.pushed);
    }
    ASSERT_TRUE(test::ends(r));
    const st::report told = r.report();
    expect_balanced(told);
    EXPECT_EQ(told.items.delivered, got.size());
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], static_cast<item>(i / 2));
  }
}

}  // namespace
