// What this file is for: the events of an auction house, and the generator that makes them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// NEXMark (Tucker, Tufte, Papadimos, Maier: "NEXMark: a benchmark for queries over data streams", 2002): persons
// register, open auctions, and bid. Of 50 events one is a person, three are auctions and 46 are bids. Half of the bids
// go to one auction of the last hundred, three quarters come from one person of the last hundred, and three quarters of
// the auctions are opened by one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace nexmark {

enum class kind : std::uint8_t { person, auction, bid };

struct person {
  std::int64_t id;
  std::uint8_t name, city, state;  // numbers of words
};
struct auction {
  std::int64_t id, seller, category;
  std::int64_t expires_ns;
};
struct bid {
  std::int64_t auction, bidder, price;
};

/// Times are event time, ns since 1970. `extra` is what an event would carry beside.
struct event {
  kind what;
  std::int64_t at_ns;
  union {
    nexmark::person person;
    nexmark::auction auction;
    nexmark::bid bid;
  };
  std::array<char, 48> extra;
};
static_assert(sizeof(event) == 96);

/// States of the people that query 3 asks for.
inline constexpr std::uint8_t oregon = 0, idaho = 1, california = 2, states = 6;
inline constexpr std::int64_t first_category = 10, categories = 5;
inline constexpr std::int64_t base_ns = 1'436'918'400'000'000'000;  // 15 July 2015

/// Makes events in the order of their times, always the same ones for a seed.
class generator {
 public:
  explicit generator(std::uint64_t seed = 1, std::int64_t between_ns = 100'000)
      : random_(seed), between_ns_(between_ns) {}
  event next();
  std::vector<event> make(std::size_t count) {
    std::vector<event> all;
    all.reserve(count);
    while (all.size() < count) all.push_back(next());
    return all;
  }

 private:
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n)); }
  std::int64_t some_person();
  std::mt19937_64 random_;
  const std::int64_t between_ns_;
  std::int64_t number_ = 0, persons_ = 0, auctions_ = 0;
};

}  // namespace nexmark
