// What this file is for: plans are carried out with real kernels on real arrays, and touch nothing but what was lost.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// The arrays are a runtime's; what "ran on another node" is only told to the log, so home has what it had before.
#include "actors/execution/reexecution.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <numeric>
#include <stdexcept>

#include <troupe/offer.hpp>
#include <troupe/troupe.hpp>

#include "actors/execution/task_errors.hpp"
#include "actors/logic/data/region.hpp"
#include "actors/memory/host_tiles.hpp"
#include "actors/memory/runtime_state.hpp"
#include "actors/wire/task_messages.hpp"

namespace {

using namespace troupe::detail;
using troupe::access_mode;
using troupe::border;
using troupe::index_t;
using troupe::logic::box4;
using troupe::logic::lineage;
using troupe::logic::reexecution_plan;
using troupe::logic::value;

constexpr auto add =
    troupe::kernel<troupe::inout<int, 1>, int>("reexecuting.add").on(troupe::cpu, [](troupe::view<int, 1> a, int by) {
      for (index_t i = a.lo(0); i < a.hi(0); ++i) a(i) += by;
    });
constexpr auto number =
    troupe::kernel<troupe::out<int, 2>>("reexecuting.number").on(troupe::cpu, [](troupe::view<int, 2> a) {
      for (index_t y = a.lo(0); y < a.hi(0); ++y)
        for (index_t x = a.lo(1); x < a.hi(1); ++x) a(y, x) = static_cast<int>(1000 * y + x);
    });
constexpr auto blur = troupe::kernel<troupe::in<int, 2>, troupe::out<int, 2>>("reexecuting.blur")
                          .on(troupe::cpu, [](troupe::view<const int, 2> from, troupe::view<int, 2> to) {
                            for (index_t y = to.lo(0); y < to.hi(0); ++y)
                              for (index_t x = to.lo(1); x < to.hi(1); ++x) {
                                int sum = 0;
                                for (index_t v = std::max(y - 1, from.lo(0)); v < std::min(y + 2, from.hi(0)); ++v)
                                  for (index_t u = std::max(x - 1, from.lo(1)); u < std::min(x + 2, from.hi(1)); ++u)
                                    sum += from(v, u);
                                to(y, x) = sum;
                              }
                          });
// Makes each element of the second a linear function of the first's.
constexpr auto line = troupe::kernel<troupe::in<int, 1>, troupe::out<int, 1>, int, char, double>("reexecuting.line")
                          .on(troupe::cpu, [](troupe::view<const int, 1> from, troupe::view<int, 1> to, int times,
                                              char plus, double scale) {
                            for (index_t i = 0; i < to.hi(0) - to.lo(0); ++i)
                              to(to.lo(0) + i) = static_cast<int>((from(from.lo(0) + i) * times + plus) * scale);
                          });
constexpr auto positions =
    troupe::kernel<troupe::inout<int, 1>>("reexecuting.positions").on(troupe::cpu, [](troupe::view<int, 1> a) {
      for (index_t i = a.lo(0); i < a.hi(0); ++i) a(i) = static_cast<int>(i);
    });
constexpr auto sum_and_copy =
    troupe::kernel<troupe::in<int, 1>, troupe::red<long, 1>, troupe::out<int, 1>>("reexecuting.sum_and_copy")
        .on(troupe::cpu, [](troupe::view<const int, 1> a, troupe::view<long, 1> total, troupe::view<int, 1> to) {
          for (index_t i = a.lo(0); i < a.hi(0); ++i) {
            total(0) += a(i);
            to(i) = static_cast<int>(total(0));
          }
        });
constexpr auto two = troupe::kernel<troupe::inout<int, 1>, troupe::inout<int, 1>>("reexecuting.two")
                         .on(troupe::cpu, [](troupe::view<int, 1> part, troupe::view<int, 1> whole) {
                           for (index_t i = part.lo(0); i < part.hi(0); ++i) part(i) += 1;
                           for (index_t i = whole.lo(0); i < whole.hi(0); ++i) whole(i) += part(part.lo(0));
                         });
constexpr auto fail =
    troupe::kernel<troupe::inout<int, 1>>("reexecuting.fail").on(troupe::cpu, [](troupe::view<int, 1>) {
      throw std::runtime_error("the paper has run out");
    });
std::atomic<int> trips{0};
constexpr auto trip =
    troupe::kernel<troupe::inout<int, 1>>("reexecuting.trip").on(troupe::cpu, [](troupe::view<int, 1> a) {
      for (index_t i = a.lo(0); i < a.hi(0); ++i) a(i) *= 2;
      if (++trips == 1) throw std::runtime_error("once more");
    });
constexpr auto elsewhere =
    troupe::kernel<troupe::inout<int, 1>>("reexecuting.elsewhere").on(troupe::gpu, troupe::source{"", "elsewhere"});
constexpr auto hidden =
    troupe::kernel<troupe::inout<int, 1>>("reexecuting.hidden").on(troupe::cpu, [](troupe::view<int, 1>) {});

const troupe::offer offered{add, number, blur, line, positions, sum_and_copy, two, fail, trip, elsewhere};

struct part {
  array_core* array;
  access_mode mode;
  box4 where, limit;
  border edge = border::refuse;
  int fill = 0;
  bool fresh = false;
};

class reexecuting : public testing::Test {
 protected:
  template <class T, int N>
  static part tile(const troupe::array<T, N>& a, access_mode mode, std::uint32_t t = 0) {
    return {a.core(), mode, a.core()->tile_box(t), a.core()->whole_box()};
  }
  template <class T, int N>
  static part window(const troupe::array<T, N>& a, std::uint32_t t, border edge, int fill = 0) {
    part p = tile(a, access_mode::read, t);
    for (int d = 0; d < N; ++d) {
      --p.where.lo[d];
      ++p.where.hi[d];
    }
    p.edge = edge;
    p.fill = fill;
    return p;
  }

  /// Notes that a task ran elsewhere; whole tiles that it wrote are there only.
  template <class... P, class... V>
  void ran(const troupe::kernel<P...>& k, const std::vector<part>& parts, const V&... values) {
    ran_with_retries(k, 0, parts, values...);
  }
  template <class... P, class... V>
  void ran_with_retries(const troupe::kernel<P...>& k, std::uint32_t retries, const std::vector<part>& parts,
                        const V&... values) {
    auto what = std::make_shared<repeatable_call>();
    wire::task_descriptor card;
    card.kernel = k.info().key;
    card.retries = retries;
    [[maybe_unused]] const auto keep = [&](const auto& v) {
      const auto* b = reinterpret_cast<const std::byte*>(&v);
      card.values.emplace_back(b, b + sizeof v);
    };
    (keep(values), ...);
    lineage::call told;
    told.cost_ns = 1000;
    for (const part& p : parts) {
      arrays_[p.array->id] = p.array;
      const array_spec& s = p.array->spec;
      wire::access_descriptor& x = card.accesses.emplace_back();
      x.array = p.array->id;
      x.mode = p.mode;
      x.fresh = p.fresh;
      x.where = p.where;
      x.limit = p.limit;
      x.edge = p.edge;
      std::memcpy(x.fill.data(), &p.fill, sizeof p.fill);
      what->arrays.push_back(p.array);
      auto shape = std::make_shared<wire::array_descriptor>();
      shape->id = p.array->id;
      shape->rank = s.rank;
      shape->size = s.size;
      shape->tile = s.tile;
      shape->element = s.element;
      shape->align = s.align;
      shape->name = s.name;
      what->shapes.push_back(shape);
      if (p.fresh) continue;
      region r;
      r.lo = p.where.lo;
      r.hi = p.where.hi;
      r.limit_lo = p.limit.lo;
      r.limit_hi = p.limit.hi;
      r.edge = p.edge;
      troupe::logic::each_touched(r, [&](const box4& b) {
        p.array->each_tile(b, [&](std::uint32_t t, const box4& all) {
          if (p.mode != access_mode::write) told.reads.push_back(current(p.array, t));
          if (p.mode == access_mode::read || !(b.contains(all))) return;
          value v = current(p.array, t);
          ++v.version;
          told.writes.push_back({v, p.array->bytes_of(t)});
        });
      });
    }
    troupe::net::writer sent;
    wire::put(sent, card);
    what->descriptor = sent.take();
    told.what = what;
    for (const auto& w : told.writes) versions_[{w.what.array, w.what.tile}] = w.what.version;
    log.ran(std::move(told));
  }
  value current(const array_core* a, std::uint32_t t) {
    return {a->id, t, versions_.try_emplace({a->id, t}, 1u).first->second};
  }
  template <class T, int N>
  value lost(const troupe::array<T, N>& a, std::uint32_t t = 0) {
    return current(a.core(), t);
  }
  /// The host's bytes are about to be overwritten: what is still needed of them is retained.
  void make_way(array_core* a, std::uint32_t t) {
    if (const auto v = log.must_keep(a->id, t)) {
      const std::byte* const b = host_tile(*a->rt, *a, t, false);
      kept.emplace_back(*v, std::vector<std::byte>(b, b + a->bytes_of(t)));
      ASSERT_TRUE(log.kept(*v, kept.back().second.size()));
    }
    log.leaves_home(a->id, t);
  }

  std::vector<reexecuted_value> reexecute(const std::vector<value>& lost_values) {
    rt.wait_all();
    runtime_state& state = *base.core()->rt;
    const std::size_t arrays = state.arrays.load(), bytes = state.array_bytes.load(), records = state.records.in_use();
    const std::size_t regions = state.regions.in_use();
    plan = log.reexecute(lost_values);
    EXPECT_TRUE(plan.holes.empty());
    for (const value& v : lost_values) make_way(arrays_.at(v.array), v.tile);
    auto how = troupe::detail::reexecute(
        plan,
        [this](const value& v, std::span<const box4>) -> const std::byte* {
          for (const auto& [name, copy] : kept)
            if (name == v) return copy.data();
          return nullptr;
        },
        state);
    EXPECT_EQ(state.arrays.load(), arrays);
    EXPECT_EQ(state.records.in_use(), records);
    EXPECT_EQ(state.regions.in_use(), regions);
    EXPECT_GE(state.array_bytes.load(), bytes);
    EXPECT_EQ(how.size(), lost_values.size());
    for (const reexecuted_value& r : how)
      r.error ? log.stays_away(r.what.array, r.what.tile) : log.came_home(r.what.array, r.what.tile, r.what.version);
    return how;
  }
  void reexecute_all(const std::vector<value>& lost_values) {
    for (const reexecuted_value& r : reexecute(lost_values)) EXPECT_FALSE(r.error) << text_of(r.error);
  }
  template <class T>
  static std::vector<T> contents(const troupe::array<T, 1>& a) {
    const auto v = a.read();
    std::vector<T> all;
    for (index_t i = 0; i < a.size()[0]; ++i) all.push_back(v(i));
    return all;
  }
  static std::vector<int> equal(std::size_t n, int x) { return std::vector<int>(n, x); }

  troupe::runtime rt{{.threads = 1}};
  troupe::array<int, 1> base = rt.filled<int>({4}, troupe::tiles(4), 7);
  lineage log;
  reexecution_plan plan;
  std::vector<std::pair<value, std::vector<std::byte>>> kept;

 private:
  std::map<std::uint64_t, array_core*> arrays_;
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint32_t> versions_;
};

TEST_F(reexecuting, repeats_a_chain_of_updates_of_one_tile) {
  const auto a = rt.filled<int>({10}, troupe::tiles(4), 7);
  for (int by = 1; by <= 3; ++by) ran(add, {tile(a, access_mode::update, 2)}, by);
  ran(add, {tile(a, access_mode::update, 0)}, 100);
  reexecute_all({lost(a, 2)});
  EXPECT_EQ(plan.steps.size(), 3u);
  EXPECT_EQ(contents(a), (std::vector<int>{7, 7, 7, 7, 7, 7, 7, 7, 13, 13}));
  reexecute_all({lost(a, 0)});
  EXPECT_EQ(contents(a), (std::vector<int>{107, 107, 107, 107, 7, 7, 7, 7, 13, 13}));
}

TEST_F(reexecuting, passes_the_values_of_the_call) {
  const auto a = rt.filled<int>({4}, troupe::tiles(4), 10), b = rt.filled<int>({4}, troupe::tiles(4), 0);
  ran(line, {tile(a, access_mode::read), tile(b, access_mode::write)}, 3, char{5}, 2.0);
  reexecute_all({lost(b)});
  EXPECT_EQ(contents(b), equal(4, 70));
}

TEST_F(reexecuting, windows_with_borders_read_across_tiles_from_wherever_they_are) {
  constexpr index_t n = 10;
  for (const border edge : {border::clip, border::clamp, border::wrap, border::fill}) {
    const auto from = rt.array<int, 2>({n, n}, troupe::tiles(4, 4));
    const auto to = rt.filled<int>({n, n}, troupe::tiles(4, 4), 0);
    // Some tiles are at home, some were written elsewhere.
    rt.for_each(troupe::grid(n, n), number, troupe::write(from)).get();
    std::vector<value> all;
    for (std::uint32_t t = 0; t < 9; ++t) {
      if (t % 2 != 0) {
        std::memset(from.core()->bytes[t].data.load(), 0x55, from.core()->bytes_of(t));
        ran(number, {tile(from, access_mode::write, t)});
      }
    }
    for (std::uint32_t t = 0; t < 9; ++t) {
      ran(blur, {window(from, t, edge, 5), tile(to, access_mode::write, t)});
      all.push_back(lost(to, t));
    }
    reexecute_all(all);
    EXPECT_EQ(plan.steps.size(), 13u);
    const auto at = [&](index_t y, index_t x) -> int {
      if (edge == border::clamp) {
        y = std::clamp<index_t>(y, 0, n - 1);
        x = std::clamp<index_t>(x, 0, n - 1);
      } else if (edge == border::wrap) {
        y = (y + n) % n;
        x = (x + n) % n;
      } else if (y < 0 || x < 0 || y >= n || x >= n) {
        return edge == border::fill ? 5 : 0;
      }
      return static_cast<int>(1000 * y + x);
    };
    const auto v = to.read();
    for (index_t y = 0; y < n; ++y)
      for (index_t x = 0; x < n; ++x) {
        int sum = 0;
        for (index_t j = -1; j <= 1; ++j)
          for (index_t i = -1; i <= 1; ++i) sum += at(y + j, x + i);
        ASSERT_EQ(v(y, x), sum) << y << ", " << x << ", border " << static_cast<int>(edge);
      }
    int spoiled = 0;
    std::memcpy(&spoiled, from.core()->bytes[1].data.load(), sizeof spoiled);
    EXPECT_EQ(spoiled, 0x55555555) << "what was not lost is as it was";
  }
}

TEST_F(reexecuting, two_arrays_made_of_each_other_start_from_kept_copies) {
  const auto a = rt.filled<int>({4}, troupe::tiles(4), 1), b = rt.filled<int>({4}, troupe::tiles(4), 0);
  {
    const auto now = a.write();
    for (index_t i = 0; i < 4; ++i) now(i) = 1;
  }
  ran(line, {tile(a, access_mode::read), tile(b, access_mode::write)}, 2, char{1}, 1.0);  // 3
  ran(line, {tile(b, access_mode::read), tile(a, access_mode::write)}, 2, char{1}, 1.0);  // 7
  ran(line, {tile(a, access_mode::read), tile(b, access_mode::write)}, 2, char{1}, 1.0);  // 15
  make_way(a.core(), 0);
  std::memset(a.core()->bytes[0].data.load(), 0x55, 16);
  reexecute_all({lost(b), lost(a)});
  EXPECT_EQ(plan.steps.size(), 3u);
  EXPECT_EQ(contents(a), equal(4, 7));
  EXPECT_EQ(contents(b), equal(4, 15));
}

TEST_F(reexecuting, reads_and_writes_memory_of_the_caller_in_its_own_layout) {
  constexpr index_t n = 6;
  std::vector<int> data(n * n);
  std::iota(data.begin(), data.end(), 0);
  std::vector<int> target(n * n, -1);
  const auto from = rt.borrow<int>(data, {n, n}, troupe::tiles(4, 4));
  const auto to = rt.borrow<int>(target, {n, n}, troupe::tiles(4, 4));
  ran(blur, {tile(from, access_mode::read, 1), tile(to, access_mode::write, 1)});
  reexecute_all({lost(to, 1)});
  EXPECT_EQ(target[4], 4 + 5 + 10 + 11);
  EXPECT_EQ(target[3 * n + 5], 16 + 17 + 22 + 23);
  EXPECT_EQ(std::count(target.begin(), target.end(), -1), n * n - 8);
}

TEST_F(reexecuting, a_sub_array_begins_at_zero) {
  const auto a = rt.filled<int>({8}, troupe::tiles(4), 7);
  part p = tile(a, access_mode::update, 1);
  ran(positions, {p});
  reexecute_all({lost(a, 1)});
  EXPECT_EQ(contents(a), (std::vector<int>{7, 7, 7, 7, 4, 5, 6, 7}));
  p.limit = p.where;
  ran(positions, {p});
  reexecute_all({lost(a, 1)});
  EXPECT_EQ(contents(a), (std::vector<int>{7, 7, 7, 7, 0, 1, 2, 3}));
}

TEST_F(reexecuting, partials_of_reductions_begin_with_their_value_and_go_nowhere) {
  const auto a = rt.filled<int>({4}, troupe::tiles(4), 2), c = rt.filled<int>({4}, troupe::tiles(4), 0);
  const auto total = rt.filled<long>({1}, troupe::tiles(1), 1000);
  part red = tile(total, access_mode::reduce);
  red.fresh = true;
  red.fill = 10;
  ran(sum_and_copy, {tile(a, access_mode::read), red, tile(c, access_mode::write)});
  reexecute_all({lost(c)});
  EXPECT_EQ(contents(c), (std::vector<int>{12, 14, 16, 18}));
  EXPECT_EQ(contents(total), std::vector<long>{1000});
}

TEST_F(reexecuting, what_was_sent_back_to_its_owner_stays_as_it_is) {
  const auto a = rt.filled<int>({8}, troupe::tiles(8), 1), b = rt.filled<int>({4}, troupe::tiles(4), 10);
  part some = tile(a, access_mode::update);
  some.where.lo[0] = 2;
  some.where.hi[0] = 4;
  ran(two, {some, tile(b, access_mode::update)});
  reexecute_all({lost(b)});
  EXPECT_EQ(contents(b), equal(4, 12));
  EXPECT_EQ(contents(a), equal(8, 1));
}

TEST_F(reexecuting, tiles_of_one_array_are_read_and_written_by_one_call) {
  const auto a = rt.filled<int>({8}, troupe::tiles(4), 3);
  ran(line, {tile(a, access_mode::read, 0), tile(a, access_mode::write, 1)}, 5, char{0}, 1.0);
  ran(line, {tile(a, access_mode::read, 1), tile(a, access_mode::write, 0)}, 5, char{0}, 1.0);
  reexecute_all({lost(a, 0), lost(a, 1)});
  EXPECT_EQ(contents(a), (std::vector<int>{75, 75, 75, 75, 15, 15, 15, 15}));
}

TEST_F(reexecuting, a_body_that_throws_fails_what_depends_on_it_and_nothing_else) {
  const auto a = rt.filled<int>({4}, troupe::tiles(4), 1), b = rt.filled<int>({4}, troupe::tiles(4), 2),
             c = rt.filled<int>({4}, troupe::tiles(4), 3);
  ran(fail, {tile(a, access_mode::update)});
  ran(line, {tile(a, access_mode::read), tile(b, access_mode::write)}, 1, char{0}, 1.0);
  ran(add, {tile(c, access_mode::update)}, 5);
  const auto how = reexecute({lost(a), lost(b), lost(c)});
  ASSERT_EQ(how.size(), 3u);
  ASSERT_TRUE(how[0].error);
  EXPECT_EQ(how[0].what, lost(a));
  EXPECT_THAT(text_of(how[0].error), testing::HasSubstr("the paper has run out"));
  EXPECT_TRUE(how[1].error);
  EXPECT_FALSE(how[2].error);
  EXPECT_EQ(contents(a), equal(4, 1));
  EXPECT_EQ(contents(b), equal(4, 2));
  EXPECT_EQ(contents(c), equal(4, 8));
}

TEST_F(reexecuting, a_body_that_throws_is_tried_as_often_as_its_task_may_be) {
  const auto a = rt.filled<int>({4}, troupe::tiles(4), 3);
  trips = 0;
  ran_with_retries(trip, 1, {tile(a, access_mode::update)});
  reexecute_all({lost(a)});
  EXPECT_EQ(trips, 2);
  EXPECT_EQ(contents(a), equal(4, 6)) << "the second try starts from where the first did";
  trips = 0;
  ran(trip, {tile(a, access_mode::update)});
  EXPECT_TRUE(reexecute({lost(a)}).at(0).error);
}

TEST_F(reexecuting, says_which_kernel_cannot_be_repeated_here) {
  const auto a = rt.filled<int>({4}, troupe::tiles(4), 3), b = rt.filled<int>({4}, troupe::tiles(4), 3);
  ran(elsewhere, {tile(a, access_mode::update)});
  ran(hidden, {tile(b, access_mode::update)});
  const auto how = reexecute({lost(a), lost(b)});
  for (const reexecuted_value& r : how) {
    ASSERT_TRUE(r.error);
    try {
      std::rethrow_exception(r.error);
    } catch (const troupe::error& e) {
      EXPECT_EQ(e.code(), troupe::errc::no_executor);
    }
  }
  EXPECT_THAT(text_of(how[0].error), testing::HasSubstr("reexecuting.elsewhere"));
  EXPECT_THAT(text_of(how[0].error), testing::HasSubstr("no body for CPUs"));
  EXPECT_THAT(text_of(how[1].error), testing::HasSubstr("not offered"));
  EXPECT_EQ(contents(a), equal(4, 3));
}

TEST_F(reexecuting, a_log_that_says_other_than_what_is_done_is_an_error) {
  const auto a = rt.filled<int>({4}, troupe::tiles(4), 3);
  ran(add, {tile(a, access_mode::update)});  // its value is missing
  EXPECT_THAT(text_of(reexecute({lost(a)}).at(0).error), testing::HasSubstr("other arguments"));
  EXPECT_EQ(contents(a), equal(4, 3));
}

}  // namespace
