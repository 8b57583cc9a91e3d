// What this file is for: a task for which there is no room says so by the code of its error, not by its cause alone.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include <troupe/troupe.hpp>

#include "gates.hpp"

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

}  // namespace
