// What this file is for: messages that are cut off, too long or changed, which a decoder must refuse or take unharmed.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <troupe/error.hpp>

#include "net/codec.hpp"

namespace test {

/// `take(reader)` decodes what follows the first byte, which is the kind: throws for anything shorter.
template <class Take>
void expect_refuses_what_is_cut_off(std::span<const std::byte> message, Take&& take) {
  for (std::size_t n = 1; n < message.size(); ++n) {
    troupe::net::reader r(message.subspan(1, n - 1));
    try {
      take(r);
      FAIL() << n << " bytes of " << message.size() << " were taken";
    } catch (const troupe::error& e) {
      EXPECT_EQ(e.code(), troupe::errc::protocol_error);
    }
  }
}

/// The same for many messages of which one to three bytes are others; some are taken.
template <class Take>
void expect_refuses_or_takes_what_is_changed(std::span<const std::byte> message, Take&& take) {
  std::mt19937 random(1);
  int refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::byte> bad(message.begin(), message.end());
    for (unsigned k = 0; k <= random() % 3; ++k)
      bad[1 + random() % (bad.size() - 1)] = static_cast<std::byte>(random());
    troupe::net::reader r(std::span<const std::byte>(bad).subspan(1));
    try {
      take(r);
    } catch (const troupe::error& e) {
      ASSERT_EQ(e.code(), troupe::errc::protocol_error);
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace test
