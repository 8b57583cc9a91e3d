// What this file is for: a task for which there is no room says so by the code of its error, not by its cause alone.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include <troupe/troupe.hpp>

#include "gates.hpp"
#include "tests/support/sanitizers.hpp"

namespace {

using namespace troupe;
using word = std::uint32_t;

TEST(room_code, a_budget_without_a_place_to_spill_to_is_out_of_memory) {
  options o;
  o.threads = 1;
  o.devices = {{"none"}};
  o.memory_bytes = 8000;
  runtime rt(o);
  std::vector<array<word, 1>> all;
  std::vector<future<void>> ends;
  for (int i = 0; i < 8; ++i) {
    all.push_back(rt.array<word>({500}, tiles(500)));
    ends.push_back(rt.spawn(
        [](view<word, 1> v) {
          for (auto k = v.lo(0); k < v.hi(0); ++k) v(k) = 1;
        },
        write(all.back())));
  }
  EXPECT_EQ(test::code_of([&] { ends.front().get(); }), std::nullopt);
  EXPECT_EQ(test::code_of([&] { ends.back().get(); }), errc::out_of_memory);
}

// The body has a view of a few elements; there is none for the tiles that these belong to.
TEST(room_code, tiles_for_which_there_is_no_memory_are_out_of_memory_once_the_body_has_run) {
  if (test::sanitized) GTEST_SKIP() << "sanitizers end the process where there is no memory";
  runtime rt(options{.threads = 1});
  constexpr index_t half = index_t{1} << 39;
  const auto body = [](view<word, 1> v) { v(0) = 1; };
  const auto middle = [&](const array<word, 1>& a) { return a.sub({{half - 2}, {half + 2}}); };
  auto a = rt.array<word>({2 * half}, tiles(half), "vast");
  const auto e = test::error_of([&] { rt.spawn({.name = "part"}, body, write(middle(a))).get(); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code, errc::out_of_memory) << e->text;
  EXPECT_TRUE(e->says("'part'")) << e->text;
  auto b = rt.array<word>({2 * half}, tiles(half), "vast");
  EXPECT_EQ(test::code_of([&] { rt.spawn({.retries = 2}, body, write(middle(b))).get(); }), errc::out_of_memory);
  auto c = rt.filled<word>({2 * half}, tiles(2 * half), 0, "vast");
  EXPECT_EQ(test::code_of([&] { rt.spawn(body, update(c)).get(); }), errc::out_of_memory);
}

}  // namespace
