// What this file is for: every device's memory, copies and fills, against plain loops over bytes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "conformance.hpp"

namespace conformance_suite {

namespace {

using bytes = std::vector<std::byte>;

bytes noise(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  bytes b(n);
  for (auto& x : b) x = static_cast<std::byte>(random());
  return b;
}

const std::vector<std::size_t> sizes{0, 1, 255, 256, 257, 4095, 65537, std::size_t{1} << 20, std::size_t{8} << 20};

// Pinned memory that goes with the test.
struct pinned_block {
  pinned_block(accelerator& a, std::size_t n) : in(a), at(a.allocate_pinned(n)) {
    if (!at) throw error(errc::out_of_memory, "the test's pinned memory cannot be had");
  }
  pinned_block(const pinned_block&) = delete;
  pinned_block& operator=(const pinned_block&) = delete;
  ~pinned_block() { in.deallocate_pinned(at); }
  accelerator& in;
  std::byte* at;
};

// A strided box inside memory of `total` elements.
struct side {
  strides step{};
  std::size_t total = 0;
};

// The dimensions in any order, with gaps; no two elements at one place.
side random_side(const four& n, std::mt19937& random) {
  std::array<std::size_t, 4> order{0, 1, 2, 3};
  if (random() % 3 == 0) std::shuffle(order.begin(), order.end(), random);
  side s;
  index_t step = random() % 4 == 0 ? 2 : 1;
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    s.step[*at] = step;
    step *= n[*at] + static_cast<index_t>(random() % 3);
  }
  s.total = static_cast<std::size_t>(step);
  return s;
}

void model_copy(std::byte* to, const strides& ts, const std::byte* from, const strides& fs, const four& n,
                std::size_t element) {
  for (index_t a = 0; a < n[0]; ++a)
    for (index_t b = 0; b < n[1]; ++b)
      for (index_t c = 0; c < n[2]; ++c)
        for (index_t d = 0; d < n[3]; ++d)
          std::memcpy(to + (a * ts[0] + b * ts[1] + c * ts[2] + d * ts[3]) * static_cast<index_t>(element),
                      from + (a * fs[0] + b * fs[1] + c * fs[2] + d * fs[3]) * static_cast<index_t>(element), element);
}

std::string text_of(const four& n, std::size_t element) {
  std::string s;
  for (const auto c : n) s += std::to_string(c) + "x";
  return s + std::to_string(element) + "B";
}

// Calls `round(count, element, to, from, random)` for boxes of 1 to 4 dimensions.
template <class Round>
void for_random_boxes(Round round) {
  std::mt19937 random(47);
  for (int i = 0; i < 120 && !::testing::Test::HasFatalFailure(); ++i) {
    four n;
    for (auto& c : n) c = 1 + static_cast<index_t>(random() % 6) * (random() % 3 != 0);
    if (i % 40 == 39) n[random() % 4] = 0;
    const std::size_t element = std::array<std::size_t, 7>{1, 2, 3, 4, 8, 12, 16}[random() % 7];
    SCOPED_TRACE("box " + std::to_string(i) + ": " + text_of(n, element));
    round(n, element, random_side(n, random), random_side(n, random), random);
  }
}

TEST_P(conformance, moves_bytes_in_and_out_from_pageable_memory) {
  const auto a = open();
  for (const std::size_t n : sizes) {
    if (n > GetParam().block_max) continue;
    const bytes in = noise(n, 1);
    const block on(*a, n);
    put(*a, 0, on.at(), in);
    ASSERT_EQ(content<std::byte>(*a, on.at(), n), in) << n << " bytes";
  }
}

TEST_P(conformance, moves_bytes_in_and_out_from_pinned_memory) {
  const auto a = open();
  for (const std::size_t n : sizes) {
    if (n > GetParam().block_max) continue;
    const bytes in = noise(n, 2);
    const block on(*a, n);
    const pinned_block from(*a, n), to(*a, n);
    std::copy(in.begin(), in.end(), from.at);
    std::fill_n(to.at, n, std::byte{0});
    a->copy_in(0, on.at(), line(), from.at, line(), line_of(n), 1);
    a->copy_out(0, to.at, line(), on.at(), line(), line_of(n), 1);
    finish(*a);
    ASSERT_TRUE(std::equal(in.begin(), in.end(), to.at)) << n << " bytes";
  }
}

TEST_P(conformance, moves_bytes_between_two_blocks_of_device_memory) {
  const auto a = open();
  for (const std::size_t n : sizes) {
    if (n > GetParam().block_max) continue;
    const bytes in = noise(n, 3);
    const block first(*a, n), second(*a, n);
    put(*a, 0, first.at(), in);
    a->copy(0, second.at(), line(), first.at(), line(), line_of(n), 1);
    ASSERT_EQ(content<std::byte>(*a, second.at(), n), in) << n << " bytes";
  }
}

TEST_P(conformance, a_copy_at_an_offset_leaves_its_surroundings_alone) {
  const auto a = open();
  const std::size_t total = 4096;
  const block on(*a, total), other(*a, total);
  for (const std::size_t offset : {1, 3, 255, 256, 257, 1000})
    for (const std::size_t n : {1, 255, 256, 257, 2048}) {
      const bytes before = noise(total, 4), in = noise(n, 5);
      put(*a, 0, on.at(), before);
      put(*a, 0, other.at(), before);
      put(*a, 0, on.at(offset), in);
      a->copy(0, other.at(offset), line(), on.at(offset), line(), line_of(n), 1);
      bytes expected = before;
      std::copy(in.begin(), in.end(), expected.begin() + static_cast<std::ptrdiff_t>(offset));
      ASSERT_EQ(content<std::byte>(*a, on.at(), total), expected) << n << " bytes at " << offset;
      ASSERT_EQ(content<std::byte>(*a, other.at(), total), expected) << n << " bytes at " << offset;
      ASSERT_EQ(content<std::byte>(*a, other.at(offset), n), in) << n << " bytes at " << offset;
    }
}

TEST_P(conformance, copies_strided_boxes_into_the_device) {
  const auto a = open();
  for_random_boxes([&](const four& n, std::size_t element, const side& to, const side& from, std::mt19937& random) {
    const std::size_t offset = random() % 70;
    const bytes in = noise(from.total * element, random());
    bytes expected = noise(offset + to.total * element, random());
    const bytes before = expected;
    const block on(*a, expected.size());
    put(*a, 0, on.at(), before);
    a->copy_in(0, on.at(offset), to.step, in.data(), from.step, n, element);
    model_copy(expected.data() + offset, to.step, in.data(), from.step, n, element);
    ASSERT_EQ(content<std::byte>(*a, on.at(), expected.size()), expected);
  });
}

TEST_P(conformance, copies_strided_boxes_out_of_the_device) {
  const auto a = open();
  for_random_boxes([&](const four& n, std::size_t element, const side& to, const side& from, std::mt19937& random) {
    const std::size_t offset = random() % 70;
    const bytes in = noise(offset + from.total * element, random());
    bytes out = noise(to.total * element, random()), expected = out;
    const block on(*a, in.size());
    put(*a, 0, on.at(), in);
    a->copy_out(0, out.data(), to.step, on.at(offset), from.step, n, element);
    finish(*a);
    model_copy(expected.data(), to.step, in.data() + offset, from.step, n, element);
    ASSERT_EQ(out, expected);
  });
}

TEST_P(conformance, copies_strided_boxes_within_the_device) {
  const auto a = open();
  for_random_boxes([&](const four& n, std::size_t element, const side& to, const side& from, std::mt19937& random) {
    const std::size_t offset = random() % 70;
    const bytes in = noise(offset + from.total * element, random());
    bytes expected = noise(to.total * element, random());
    const bytes before = expected;
    const block first(*a, in.size()), second(*a, expected.size());
    put(*a, 0, first.at(), in);
    put(*a, 0, second.at(), before);
    a->copy(0, second.at(), to.step, first.at(offset), from.step, n, element);
    model_copy(expected.data(), to.step, in.data() + offset, from.step, n, element);
    ASSERT_EQ(content<std::byte>(*a, second.at(), expected.size()), expected);
  });
}

TEST_P(conformance, copies_strided_boxes_within_one_block) {
  const auto a = open();
  for_random_boxes([&](const four& n, std::size_t element, const side& to, const side& from, std::mt19937& random) {
    const std::size_t half = from.total * element;
    bytes expected = noise(half + to.total * element, random());
    const bytes before = expected;
    const block on(*a, expected.size());
    put(*a, 0, on.at(), before);
    a->copy(0, on.at(half), to.step, on.at(), from.step, n, element);
    model_copy(expected.data() + half, to.step, expected.data(), from.step, n, element);
    ASSERT_EQ(content<std::byte>(*a, on.at(), expected.size()), expected);
  });
}

TEST_P(conformance, fills_with_elements_of_every_size) {
  const auto a = open();
  const std::size_t total = 40000;
  const block on(*a, total);
  std::mt19937 random(6);
  for (std::size_t element = 1; element <= troupe::devices::accelerator::fill_max; ++element)
    for (const std::size_t count : {0, 1, 2, 7, 64, 1000})
      for (const std::size_t offset : {std::size_t{0}, element, std::size_t{256}, std::size_t{13}}) {
        bytes expected = noise(total, random());
        bytes value = noise(element, random());
        if (random() % 4 == 0) value.assign(element, std::byte{0x5a});
        const bytes before = expected;
        put(*a, 0, on.at(), before);
        a->fill(0, on.at(offset), value.data(), element, count);
        for (std::size_t i = 0; i < count; ++i)
          std::copy(value.begin(), value.end(), expected.begin() + static_cast<std::ptrdiff_t>(offset + i * element));
        value.assign(element, std::byte{0});  // it was read at once
        ASSERT_EQ(content<std::byte>(*a, on.at(), total), expected)
            << count << " elements of " << element << " bytes at " << offset;
      }
}

TEST_P(conformance, fresh_memory_can_be_written_before_it_is_read) {
  const auto a = open();
  for (int i = 0; i < 20; ++i) {
    const block on(*a, 4096);
    std::vector<double> in(512);
    std::iota(in.begin(), in.end(), i);
    const auto fresh = content<double>(*a, on.at(), 512);
    if (GetParam().fresh_is_nan) {
      ASSERT_TRUE(std::all_of(fresh.begin(), fresh.end(), [](double d) { return std::isnan(d); }));
    }
    put(*a, 0, on.at(), in);
    ASSERT_EQ(content<double>(*a, on.at(), 512), in);
  }
}

}  // namespace

}  // namespace conformance_suite
