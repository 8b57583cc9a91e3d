// What this file is for: the log asks for no memory while an executor goes on with what is known of it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Counts by a plain `new` of this program's own. Sanitizers bring theirs: with them the test is skipped.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "told_lineage.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

namespace {
constexpr bool counts = false;
constexpr std::size_t allocations = 0;
}  // namespace

#else

namespace {
constexpr bool counts = true;
thread_local std::size_t allocations = 0;
}  // namespace

// Not inlined: the compiler is not to see half of a pair.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* const p = std::malloc(bytes)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }

#endif

namespace {

using namespace test;

TEST(lineage, allocates_nothing_for_a_tile_that_is_written_again_and_again) {
  if (!counts) GTEST_SKIP() << "the sanitizer allocates";
  constexpr std::size_t rounds = 200;
  const auto what = std::make_shared<const int>(0);
  std::vector<lineage::call> all(rounds);
  for (std::uint32_t i = 0; i < rounds; ++i) {
    all[i].writes.push_back({{A, 0, i + 1}, 100});
    all[i].what = what;
    all[i].cost_ns = 1000;
    all[i].executor = 3;
  }
  lineage l;
  std::size_t before = 0, wanted = 0;
  for (std::size_t i = 0; i < rounds; ++i) {
    if (i == rounds / 2) before = allocations;
    l.ran(std::move(all[i]));
    wanted += l.to_save(1000).size();
  }
  EXPECT_EQ(allocations - before, 0u);
  EXPECT_EQ(wanted, 0u);
  EXPECT_EQ(l.calls(), 1u);
}

}  // namespace
