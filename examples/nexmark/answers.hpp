// What this file is for: what queries answer: rows of numbers, whatever has computed them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "events.hpp"

namespace troupe {
class runtime;
}

namespace nexmark {

using row = std::array<std::int64_t, 4>;

/// The rows of an answer, in any order: their number and a sum over them, and the rows themselves where those are kept.
class answer {
 public:
  explicit answer(bool keeps_rows) : keeps_rows_(keeps_rows) {}
  void add(std::int64_t a, std::int64_t b = 0, std::int64_t c = 0, std::int64_t d = 0) {
    ++count_;
    std::uint64_t mixed = 0;
    for (const std::int64_t x : {a, b, c, d}) mixed = (mixed + static_cast<std::uint64_t>(x)) * 0x9e3779b97f4a7c15;
    sum_ += mixed ^ (mixed >> 29);
    if (keeps_rows_) rows_.push_back({a, b, c, d});
  }
  std::uint64_t count() const { return count_; }
  std::vector<row> sorted() const {
    std::vector<row> all = rows_;
    std::sort(all.begin(), all.end());
    return all;
  }
  bool operator==(const answer& o) const { return count_ == o.count_ && sum_ == o.sum_; }

 private:
  bool keeps_rows_;
  std::uint64_t count_ = 0, sum_ = 0;
  std::vector<row> rows_;
};

/// What the queries ask, by number.
inline constexpr std::array<const char*, 9> questions{
    "all bids",
    "prices of bids in another currency",
    "bids on some auctions",
    "who in three states sells something of a category",
    "mean closing price of each category",
    "auctions with most bids in the last 10 s, each 2 s",
    "mean closing price of each seller's last ten auctions",
    "highest bids of each 10 s",
    "who has registered and opened an auction in the same 10 s",
};

/// Answers a query with a stream.
answer by_stream(troupe::runtime&, int query, std::span<const event>, bool keeps_rows);
/// Answers it with one loop that knows that events are in order.
answer by_loop(int query, std::span<const event>, bool keeps_rows);
/// Answers it with SQLite: its rows, sorted. Throws std::runtime_error.
std::vector<row> by_sqlite(int query, std::span<const event>);

}  // namespace nexmark
