// What this file is for: the host device's copies and fills, against a loop over single elements.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <troupe/error.hpp>

#include "devices/host/host_device.hpp"

namespace {

using namespace troupe::devices;
using troupe::index_t;
using four = std::array<index_t, troupe::rank_max>;

// Strides of a box of `count` inside a larger row-major block; the last one is sometimes not 1.
four random_strides(const four& count, std::mt19937& random) {
  four s;
  index_t step = random() % 4 == 0 ? 2 : 1;
  for (int d = troupe::rank_max - 1; d >= 0; --d) {
    s[d] = step;
    step *= count[d] + static_cast<index_t>(random() % 3);
  }
  return s;
}

std::size_t reach(const four& count, const four& stride) {
  index_t last = 0;
  for (int d = 0; d < troupe::rank_max; ++d) last += (count[d] - 1) * stride[d];
  return static_cast<std::size_t>(last + 1);
}

TEST(host_device, copies_strided_blocks_as_a_loop_over_elements_does) {
  const auto host = make_host_device();
  std::mt19937 random(31);
  for (int round = 0; round < 2000; ++round) {
    four n;
    for (index_t& c : n) c = 1 + static_cast<index_t>(random() % 5) * (random() % 3 != 0);
    const four ts = random_strides(n, random), fs = random_strides(n, random);
    const std::size_t element = std::vector<std::size_t>{1, 2, 3, 4, 8, 12, 16}[random() % 7];
    std::vector<std::byte> from(reach(n, fs) * element), to(reach(n, ts) * element), expected;
    for (std::byte& b : from) b = static_cast<std::byte>(random());
    for (std::byte& b : to) b = static_cast<std::byte>(random());
    expected = to;
    for (index_t a = 0; a < n[0]; ++a)
      for (index_t b = 0; b < n[1]; ++b)
        for (index_t c = 0; c < n[2]; ++c)
          for (index_t d = 0; d < n[3]; ++d)
            for (std::size_t e = 0; e < element; ++e)
              expected[static_cast<std::size_t>(a * ts[0] + b * ts[1] + c * ts[2] + d * ts[3]) * element + e] =
                  from[static_cast<std::size_t>(a * fs[0] + b * fs[1] + c * fs[2] + d * fs[3]) * element + e];
    host->copy(to.data(), ts, from.data(), fs, n, element);
    ASSERT_EQ(to, expected) << "round " << round << ": " << n[0] << "x" << n[1] << "x" << n[2] << "x" << n[3];
  }
}

TEST(host_device, copies_nothing_when_a_count_is_zero) {
  const auto host = make_host_device();
  for (int d = 0; d < troupe::rank_max; ++d) {
    four n{2, 2, 2, 2};
    n[d] = 0;
    const std::vector<std::byte> from(16, std::byte{1});
    std::vector<std::byte> to(16, std::byte{9});
    host->copy(to.data(), {8, 4, 2, 1}, from.data(), {8, 4, 2, 1}, n, 1);
    EXPECT_EQ(to, std::vector<std::byte>(16, std::byte{9})) << "dimension " << d;
  }
}

TEST(host_device, fills_exactly_the_elements_it_was_told_to) {
  const auto host = make_host_device();
  std::mt19937 random(32);
  for (const std::size_t element : {1u, 3u, 4u, 8u, 24u, 32u})
    for (const std::size_t count : {0u, 1u, 2u, 3u, 7u, 64u, 1000u}) {
      std::vector<std::byte> value(element), got(element * count + 8, std::byte{0xee});
      for (std::byte& b : value) b = static_cast<std::byte>(random());
      host->fill(got.data(), value.data(), element, count);
      for (std::size_t i = 0; i < element * count; ++i)
        ASSERT_EQ(got[i], value[i % element]) << element << "x" << count;
      for (std::size_t i = element * count; i < got.size(); ++i) ASSERT_EQ(got[i], std::byte{0xee}) << "beyond the end";
    }
}

TEST(host_device, gives_aligned_memory_also_for_no_bytes) {
  const auto host = make_host_device();
  for (const std::size_t align : {8u, 64u, 4096u})
    for (const std::size_t bytes : {0u, 1u, 1000u}) {
      std::byte* p = host->allocate(bytes, align);
      ASSERT_NE(p, nullptr);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % align, 0u);
      host->deallocate(p, bytes, align);
    }
}

TEST(host_device, says_how_many_bytes_it_could_not_give) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers end the program on allocations of this size";
#endif
  const auto host = make_host_device();
  const std::size_t bytes = std::numeric_limits<std::size_t>::max() / 4;
  try {
    host->deallocate(host->allocate(bytes, 64), bytes, 64);
    FAIL() << "it gave " << bytes << " bytes";
  } catch (const troupe::error& e) {
    EXPECT_EQ(e.code(), troupe::errc::out_of_memory);
    EXPECT_NE(std::string(e.what()).find(std::to_string(bytes)), std::string::npos) << e.what();
  }
}

TEST(host_device, knows_its_name_and_how_much_memory_there_is) {
  const auto host = make_host_device();
  EXPECT_EQ(host->facts().name, "host");
  EXPECT_GT(host->facts().memory_bytes, 1u << 20);
}

}  // namespace
