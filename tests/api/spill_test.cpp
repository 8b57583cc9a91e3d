// What this file is for: arrays larger than the host memory budget: exact results, bounds, errors by size, full disks.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
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
using word = std::uint64_t;

constexpr index_t tile = 1024;  // 8 KiB
constexpr std::uint64_t tile_bytes = tile * sizeof(word);

options bounded(std::uint64_t tiles_in_memory, int threads = 2) {
  options o;
  o.threads = threads;
  o.memory_bytes = tiles_in_memory * tile_bytes;
  o.spill_directory = testing::TempDir();
  return o;
}
options without_disk(std::uint64_t tiles_in_memory) {
  options o = bounded(tiles_in_memory);
  o.spill_directory.clear();
  return o;
}

constexpr auto number = kernel<out<word, 1>, word>("number").on(cpu, [](view<word, 1> a, word from) {
  for (index_t i = a.lo(0); i < a.hi(0); ++i) a(i) = from + static_cast<word>(i);
});
constexpr auto stir = kernel<inout<word, 1>, word>("stir").on(cpu, [](view<word, 1> a, word factor) {
  for (index_t i = a.lo(0); i < a.hi(0); ++i) a(i) = a(i) * factor + static_cast<word>(i);
});
array<word, 1> at(const array<word, 1>& a, index_t t) { return a.sub(box<1>{{t * tile}, {(t + 1) * tile}}); }
array<word, 2> at(const array<word, 2>& a, index_t i, index_t j, index_t n) {
  return a.sub(box<2>{{i * n, j * n}, {(i + 1) * n, (j + 1) * n}});
}

word sum_of(view<const word, 1> a) {
  word sum = 0;
  for (index_t i = a.lo(0); i < a.hi(0); ++i) sum += a(i);
  return sum;
}

// The cause of a failed task, else the error itself.
struct told {
  errc code{};
  std::string text;
  bool says(const std::string& part) const { return text.find(part) != std::string::npos; }
};
template <class F>
told cause_of(F&& f) {
  try {
    f();
  } catch (const task_failed& e) {
    told t{e.code(), e.what()};
    try {
      e.rethrow_cause();
    } catch (const error& inner) {
      t.code = inner.code();
    }
    return t;
  } catch (const error& e) {
    return {e.code(), e.what()};
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

// Files grow no further than this while it lives; the system then says so instead of killing the process.
class small_disk {
 public:
  explicit small_disk(std::uint64_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    resize(bytes);
  }
  ~small_disk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  void resize(std::uint64_t bytes) {
    rlimit now = before_;
    now.rlim_cur = bytes;
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &now), 0);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

// ---- what fits on disk only -----------------------------------------------------------------------------------------

TEST(spill, a_product_of_matrices_four_times_the_budget_is_exact) {
  constexpr index_t n = 256, block = 32, blocks = n / block;  // 8 KiB a tile, three matrices of 512 KiB
  options o = bounded(48);                                    // 384 KiB
  runtime rt(o);
  auto a = rt.array<word>({n, n}, tiles(block, block), "a"), b = rt.array<word>({n, n}, tiles(block, block), "b");
  auto c = rt.filled<word>({n, n}, tiles(block, block), 0, "c");
  const auto fill = kernel<out<word, 2>, word>("fill").on(cpu, [](view<word, 2> m, word salt) {
    for (index_t y = m.lo(0); y < m.hi(0); ++y)
      for (index_t x = m.lo(1); x < m.hi(1); ++x) m(y, x) = static_cast<word>(y * 31 + x * 17) * salt;
  });
  const auto multiply = kernel<in<word, 2>, in<word, 2>, inout<word, 2>>("multiply")
                            .on(cpu, [](view<const word, 2> l, view<const word, 2> r, view<word, 2> to) {
                              for (index_t y = to.lo(0); y < to.hi(0); ++y)
                                for (index_t x = to.lo(1); x < to.hi(1); ++x)
                                  for (index_t k = l.lo(1); k < l.hi(1); ++k) to(y, x) += l(y, k) * r(k, x);
                            });
  rt.for_each(grid(n, n), fill, write(a), word{3});
  rt.for_each(grid(n, n), fill, write(b), word{5});
  for (index_t i = 0; i < blocks; ++i)
    for (index_t j = 0; j < blocks; ++j)
      for (index_t k = 0; k < blocks; ++k)
        rt.spawn(multiply, read(at(a, i, k, block)), read(at(b, k, j, block)), update(at(c, i, j, block)));
  rt.wait_all();
  for (index_t i = 0; i < blocks; ++i) {
    const auto row = c.sub(box<2>{{i * block, 0}, {(i + 1) * block, n}}).read();
    for (index_t y : {index_t{0}, block - 1})
      for (index_t x = 0; x < n; x += 37) {
        word expected = 0;
        for (index_t k = 0; k < n; ++k)
          expected += static_cast<word>((i * block + y) * 31 + k * 17) * 3 * (static_cast<word>(k * 31 + x * 17) * 5);
        ASSERT_EQ(row(y, x), expected) << i << " " << y << " " << x;
      }
  }
  const runtime_report r = rt.report();
  EXPECT_LE(r.bytes_allocated_max, o.memory_bytes);
  EXPECT_GT(r.bytes_spilled, 0u);
  EXPECT_GT(r.bytes_read_back, 0u);
  EXPECT_GT(r.bytes_on_disk, 0u);
}

TEST(spill, windows_over_an_array_four_times_the_budget_are_exact) {
  options o = bounded(8);
  runtime rt(o);
  constexpr index_t n = 32 * tile;
  auto a = rt.array<word>({n}, tiles(tile), "a"), b = rt.array<word>({n}, tiles(tile), "b");
  const auto smooth = kernel<in<word, 1>, out<word, 1>>("smooth").on(cpu, [](view<const word, 1> f, view<word, 1> to) {
    for (index_t i = to.lo(0); i < to.hi(0); ++i) to(i) = f(i - 1) * 3 + f(i) * 5 + f(i + 1) * 7;
  });
  rt.for_each(grid(n), number, write(a), word{11});
  std::vector<word> now(n), next(n);
  for (index_t i = 0; i < n; ++i) now[static_cast<std::size_t>(i)] = 11 + static_cast<word>(i);
  for (int step = 0; step < 6; ++step) {
    rt.for_each(grid(n), smooth, read(a, window(1).wrap()), write(b));
    std::swap(a, b);
    for (index_t i = 0; i < n; ++i)
      next[static_cast<std::size_t>(i)] = now[static_cast<std::size_t>((i + n - 1) % n)] * 3 +
                                          now[static_cast<std::size_t>(i)] * 5 +
                                          now[static_cast<std::size_t>((i + 1) % n)] * 7;
    now.swap(next);
  }
  for (index_t t = 0; t < n; t += tile) {
    const auto v = a.sub(box<1>{{t}, {t + tile}}).read();
    for (index_t i = 0; i < tile; ++i) ASSERT_EQ(v(i), now[static_cast<std::size_t>(t + i)]) << t + i;
  }
  EXPECT_LE(rt.report().bytes_allocated_max, o.memory_bytes);
  EXPECT_GT(rt.report().bytes_spilled, 0u);
}

TEST(spill, without_a_budget_nothing_is_written) {
  options o;
  o.threads = 1;
  o.spill_directory = "/nowhere at all";  // not looked at
  runtime rt(o);
  auto a = rt.array<word>({64 * tile}, tiles(tile));
  rt.for_each(grid(64 * tile), number, write(a), word{1}).get();
  EXPECT_EQ(rt.report().bytes_spilled, 0u);
  EXPECT_EQ(rt.report().bytes_allocated_max, 64 * tile_bytes);
}

TEST(spill, tiles_that_have_not_changed_leave_without_being_written_again) {
  runtime rt(bounded(4, 1));
  auto a = rt.array<word>({8 * tile}, tiles(tile), "a");
  rt.for_each(grid(8 * tile), number, write(a), word{1}).get();
  for (int round = 0; round < 3; ++round)
    for (index_t t = 0; t < 8; ++t)
      EXPECT_EQ(rt.spawn(&sum_of, read(at(a, t))).get(),
                tile + static_cast<word>(tile * (2 * t * tile + tile - 1) / 2));
  const runtime_report r = rt.report();
  EXPECT_EQ(r.bytes_spilled, 8 * tile_bytes);
  EXPECT_GT(r.bytes_read_back, 8 * tile_bytes);
}

TEST(spill, memory_of_the_caller_neither_counts_nor_leaves) {
  runtime rt(bounded(2));
  std::vector<word> mine(16 * tile, 1);
  auto a = rt.borrow(std::span<word>(mine), {16 * tile}, tiles(tile), "mine");
  rt.for_each(grid(16 * tile), stir, update(a), word{3}).get();
  EXPECT_EQ(a.read()(tile), 3u + tile);
  EXPECT_EQ(rt.report().bytes_allocated_max, 0u);
  EXPECT_EQ(rt.report().bytes_spilled, 0u);
}

TEST(spill, dropped_handles_give_the_disk_back) {
  runtime rt(bounded(4));
  {
    auto a = rt.array<word>({16 * tile}, tiles(tile));
    rt.for_each(grid(16 * tile), number, write(a), word{1}).get();
    EXPECT_GE(rt.report().bytes_on_disk, 12 * tile_bytes);
  }
  rt.wait_all();
  const runtime_report r = rt.report();
  EXPECT_EQ(r.bytes_on_disk, 0u);
  EXPECT_EQ(r.bytes_allocated, 0u);
  EXPECT_EQ(r.arrays, 0u);
}

TEST(spill, the_directory_is_as_it_was_also_while_it_is_used) {
  const std::filesystem::path where = std::filesystem::path(testing::TempDir()) / "troupe-spill-test";
  std::filesystem::create_directory(where);
  options o = bounded(2);
  o.spill_directory = where.string();
  auto left = std::make_unique<array<word, 1>>();
  {
    runtime rt(o);
    *left = rt.array<word>({8 * tile}, tiles(tile));
    rt.for_each(grid(8 * tile), number, write(*left), word{1}).get();
    EXPECT_GT(rt.report().bytes_on_disk, 0u);
    EXPECT_TRUE(std::filesystem::is_empty(where));
  }
  EXPECT_TRUE(std::filesystem::is_empty(where));
  left.reset();  // after its runtime
  std::filesystem::remove(where);
}

// ---- host views -----------------------------------------------------------------------------------------------------

TEST(spill, host_views_bring_their_tiles_back_and_hold_them) {
  options o = bounded(4);
  runtime rt(o);
  auto a = rt.array<word>({16 * tile}, tiles(tile), "a");
  rt.for_each(grid(16 * tile), number, write(a), word{5}).get();
  const auto first = at(a, 0).read();
  auto last = at(a, 15).update();
  for (index_t t = 1; t < 15; ++t) rt.spawn(stir, update(at(a, t)), word{2});
  rt.wait_all();
  EXPECT_EQ(first(7), 12u);
  last(0) += 1;
  last.close();
  EXPECT_EQ(at(a, 15).read()(0), 5u + 15 * tile + 1);
  EXPECT_EQ(at(a, 3).read()(1), (5u + 3 * tile + 1) * 2 + 1);
  EXPECT_LE(rt.report().bytes_allocated_max, o.memory_bytes);
}

TEST(spill, a_view_of_more_than_the_budget_is_an_error_with_sizes) {
  runtime rt(bounded(4));
  auto a = rt.array<word>({16 * tile}, tiles(tile), "large");
  const auto e = error_of([&] { a.read(); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code, errc::out_of_memory);
  EXPECT_TRUE(e->says("large") && e->says(std::to_string(16 * tile_bytes)) && e->says(std::to_string(4 * tile_bytes)))
      << e->text;
  EXPECT_EQ(code_of([&] { a.write(); }), errc::out_of_memory);
}

TEST(spill, a_view_waits_for_room_that_another_view_holds) {
  runtime rt(bounded(2));
  auto a = rt.filled<word>({4 * tile}, tiles(tile), 3);
  auto held = a.sub(box<1>{{0}, {2 * tile}}).read();
  EXPECT_FALSE(at(a, 3).try_read_for(std::chrono::milliseconds(1)));
  held.close();
  EXPECT_EQ(at(a, 3).read()(0), 3u);
  rt.wait_all();
}

// ---- what can never fit ---------------------------------------------------------------------------------------------

TEST(spill, a_task_that_can_never_fit_is_refused_at_spawn_with_sizes) {
  runtime rt(bounded(3));
  auto a = rt.array<word>({16 * tile}, tiles(tile), "small"), b = rt.array<word>({16 * tile}, tiles(tile), "wide");
  const auto both = [](view<word, 1>, view<word, 1>) {};
  const auto e = error_of([&] { rt.spawn(both, write(at(a, 0)), write(b.sub(box<1>{{0}, {3 * tile}}))); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code, errc::out_of_memory);
  EXPECT_TRUE(e->says("wide") && e->says(std::to_string(4 * tile_bytes)) && e->says(std::to_string(3 * tile_bytes)))
      << e->text;
  // Tiles that are named twice count once.
  auto c = rt.filled<word>({4 * tile}, tiles(tile), 1, "twice");
  rt.spawn([](view<const word, 1>, view<const word, 1>) {}, read(c.sub(box<1>{{0}, {2 * tile}})),
           read(c.sub(box<1>{{tile}, {3 * tile}})))
      .get();
  rt.for_each(grid(16 * tile), number, write(a), word{1}).get();  // chunks are looked at one by one
}

TEST(spill, without_a_directory_what_does_not_fit_is_an_error_and_freed_handles_help) {
  runtime rt(without_disk(4));
  auto a = rt.array<word>({4 * tile}, tiles(tile), "a"), b = rt.array<word>({tile}, tiles(tile), "b");
  rt.for_each(grid(4 * tile), number, write(a), word{1}).get();
  const told t = cause_of([&] { rt.spawn(number, write(b), word{1}).get(); });
  EXPECT_EQ(t.code, errc::out_of_memory);
  EXPECT_TRUE(t.says("spill_directory") && t.says(std::to_string(tile_bytes))) << t.text;
  EXPECT_EQ(rt.spawn(&sum_of, read(at(a, 0))).get(), tile + tile * (tile - 1) / 2);
  rt.spawn([](view<const word, 1>) {}, read(a));  // holds it for a while
  a = {};
  rt.spawn(number, write(b), word{1}).get();
  EXPECT_EQ(rt.report().bytes_spilled, 0u);
}

TEST(spill, a_task_that_does_not_fit_beside_the_body_that_waits_for_it_fails_instead_of_hanging) {
  runtime rt(bounded(4));
  auto a = rt.filled<word>({3 * tile}, tiles(tile), 1, "a"), b = rt.filled<word>({2 * tile}, tiles(tile), 1, "b");
  told t;
  rt.spawn([&](view<const word, 1>) { t = cause_of([&] { rt.spawn(&sum_of, read(b)).get(); }); }, read(a)).get();
  EXPECT_EQ(t.code, errc::out_of_memory);
  EXPECT_TRUE(t.says(std::to_string(5 * tile_bytes))) << t.text;
  EXPECT_EQ(rt.spawn(&sum_of, read(b)).get(), 2u * tile);
}

// ---- failures -------------------------------------------------------------------------------------------------------

TEST(spill, retries_and_failures_leave_the_account_in_order) {
  options o = bounded(4);
  runtime rt(o);
  constexpr index_t count = 24;
  auto a = rt.array<word>({count * tile}, tiles(tile), "a");
  rt.for_each(grid(count * tile), number, write(a), word{0}).get();
  struct wrong : std::runtime_error {
    wrong() : std::runtime_error("as asked") {}
  };
  for (index_t t = 0; t < count; ++t) {
    const bool fails = t % 3 == 0;
    rt.spawn(
        {.retries = 1},
        [fails](task_context& c, view<word, 1> v) {
          v(v.lo(0)) += 1;
          if (fails || c.attempt() == 1) throw wrong();
        },
        update(at(a, t)));
    rt.spawn(stir, update(at(a, t)), word{2});
  }
  rt.wait_all();
  for (index_t t = 0; t < count; ++t) {
    if (t % 3 == 0) {
      EXPECT_EQ(code_of([&] { at(a, t).read(); }), errc::dependency_failed);
      rt.spawn(number, write(at(a, t)), word{7});
      EXPECT_EQ(at(a, t).read()(0), 7u);
    } else {
      EXPECT_EQ(at(a, t).read()(0), static_cast<word>(t * tile + 1) * 2);
    }
  }
  EXPECT_LE(rt.report().bytes_allocated_max, o.memory_bytes);
  a = {};
  rt.wait_all();
  EXPECT_EQ(rt.report().bytes_allocated, 0u);
  EXPECT_EQ(rt.report().bytes_on_disk, 0u);
}

TEST(spill, cancelled_tasks_give_their_room_back) {
  runtime rt(bounded(4));
  auto a = rt.filled<word>({64 * tile}, tiles(tile), 1);
  for (int round = 0; round < 20; ++round) {
    std::stop_source stop;
    task_options how;
    how.stop = stop.get_token();
    for (index_t t = 0; t < 64; ++t) rt.spawn(how, &sum_of, read(at(a, t)));
    stop.request_stop();
    for (index_t t = 0; t < 64; t += 9) EXPECT_EQ(rt.spawn(&sum_of, read(at(a, t))).get(), static_cast<word>(tile));
  }
  rt.wait_all();
  const auto whole = a.sub(box<1>{{0}, {4 * tile}}).read();  // nobody holds anything any more
  EXPECT_EQ(whole(0), 1u);
}

TEST(spill, a_directory_that_cannot_be_used_is_an_error_at_construction) {
  options o = bounded(4);
  o.spill_directory = testing::TempDir() + "/there is no such directory";
  const auto e = error_of([&] { runtime rt(o); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code, errc::io_failed);
  EXPECT_TRUE(e->says("spill_directory") && e->says("no such directory")) << e->text;
}

TEST(spill, a_full_disk_leaves_what_a_host_view_was_to_change) {
  runtime rt(bounded(4, 1));
  constexpr index_t count = 12;
  auto a = rt.array<word>({count * tile}, tiles(tile), "a");
  for (index_t t = 0; t < count; ++t) rt.spawn(number, write(at(a, t)), word{1});
  rt.wait_all();
  for (const bool keeps : {true, false}) {
    int refused = 0;
    {
      small_disk none(1);
      for (index_t t = 0; t < count; ++t)
        if (const auto e = error_of([&] { (void)(keeps ? at(a, t).update() : at(a, t).write()); })) {
          EXPECT_EQ(e->code, errc::disk_full) << e->text;
          ++refused;
        } else {
          at(a, t).update()(0) = 1;  // it was in memory, and may have other contents now
        }
    }
    EXPECT_GE(refused, 1);
    for (index_t t = 0; t < count; ++t) {
      EXPECT_FALSE(error_of([&] { EXPECT_EQ(at(a, t).read()(0), 1u) << t; })) << t;
    }
  }
}

TEST(spill, a_full_disk_fails_the_task_that_needed_room_loses_nothing_and_may_be_emptied) {
  options o = bounded(4, 1);
  runtime rt(o);
  auto a = rt.array<word>({16 * tile}, tiles(tile), "a");
  std::vector<future<void>> all;
  int failed = 0;
  {
    small_disk none(tile_bytes);  // room for one tile
    for (index_t t = 0; t < 16; ++t) all.push_back(rt.spawn(number, write(at(a, t)), word{1}));
    std::vector<bool> written(16);
    for (std::size_t t = 0; t < 16; ++t) {
      const auto e = error_of([&] { all[t].get(); });
      written[t] = !e;
      if (!e) continue;
      ++failed;
      const told why = cause_of([&] { all[t].get(); });
      EXPECT_EQ(why.code, errc::disk_full);
      EXPECT_TRUE(why.says(testing::TempDir())) << why.text;
    }
    EXPECT_GE(failed, 1);
    EXPECT_LT(failed, 16);
    for (index_t t = 0; t < 16; ++t)  // what was written stays valid
      if (written[static_cast<std::size_t>(t)]) {
        const auto read_back = error_of([&] {
          EXPECT_EQ(rt.spawn(&sum_of, read(at(a, t))).get(), tile + static_cast<word>(tile * (tile - 1) / 2));
        });
        // Only what is on disk may want room of its own.
        if (read_back) {
          EXPECT_NE(read_back->text.find("spill"), std::string::npos) << read_back->text;
        }
      }
  }
  for (index_t t = 0; t < 16; ++t) rt.spawn(number, write(at(a, t)), word{2});
  for (index_t t = 0; t < 16; ++t) EXPECT_EQ(at(a, t).read()(1), 3u);
  EXPECT_LE(rt.report().bytes_allocated_max, o.memory_bytes);
}

// ---- other kinds of work --------------------------------------------------------------------------------------------

TEST(spill, reductions_and_recorded_graphs_go_on_under_a_budget) {
  options o = bounded(6);
  runtime rt(o);
  auto a = rt.array<word>({16 * tile}, tiles(tile), "a");
  auto sum = rt.filled<word>({1}, tiles(1), 0, "sum");
  rt.for_each(grid(16 * tile), number, write(a), word{1}).get();
  rt.for_each(
      grid(16 * tile).chunks(tile), [](view<const word, 1> v, view<word, 1> s) { s(0) += sum_of(v); },
      read(a, one_to_one{}), reduce(sum));
  EXPECT_EQ(sum.read()(0), 16u * tile + 16u * tile * (16u * tile - 1) / 2);
  const graph g = rt.record([&](recorder& r) {
    r.spawn(task_options{}, stir, update(at(a, 0)), word{2});
    r.spawn(stir, update(at(a, 5)), word{3});
  });
  for (int i = 0; i < 3; ++i) {
    rt.run(g);
    rt.for_each(grid(16 * tile), stir, update(a), word{1});
  }
  rt.wait_all();
  EXPECT_EQ(at(a, 0).read()(0), 1u * 2 * 2 * 2);
  EXPECT_LE(rt.report().bytes_allocated_max, o.memory_bytes);
}

TEST(spill, a_runtime_that_stops_with_tiles_on_disk_and_on_their_way_stops_in_time) {
  const auto held = std::make_shared<gate>();  // the body may outlive the test
  std::vector<future<void>> all;
  {
    const test::opener always(*held);
    options o = bounded(3);
    o.shutdown_timeout = std::chrono::milliseconds(20);
    runtime rt(o);
    auto a = rt.filled<word>({32 * tile}, tiles(tile), 1);
    rt.for_each(grid(32 * tile), stir, update(a), word{3}).get();
    rt.spawn([held](view<word, 1>) { EXPECT_TRUE(held->pass()); }, update(at(a, 0)));
    for (index_t t = 0; t < 32; ++t) all.push_back(rt.spawn(stir, update(at(a, t)), word{3}));
    const auto r = rt.shutdown(std::chrono::steady_clock::now());
    EXPECT_FALSE(r.complete);
  }
  int stopped = 0;
  for (auto& f : all)
    if (const auto e = error_of([&] { f.get(); })) ++stopped;
  EXPECT_GE(stopped, 1);
}

}  // namespace
