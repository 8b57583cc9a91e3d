// What this file is for: making the events of an auction house with the shares that NEXMark gives them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>

#include "events.hpp"

namespace nexmark {

namespace {

constexpr std::int64_t round_length = 50, persons_in_round = 1, auctions_in_round = 3;
constexpr std::int64_t hot_group = 100;      // one of so many auctions or persons is asked for by most
constexpr std::int64_t open_auctions = 100;  // that bids go to
constexpr std::int64_t active_persons = 1000;

}  // namespace

std::int64_t generator::some_person() {
  const std::int64_t active = std::min(persons_, active_persons);
  return persons_ - active + below(active);
}

event generator::next() {
  event e{};
  const std::int64_t place = number_ % round_length;
  e.at_ns = base_ns + number_ * between_ns_;
  ++number_;
  if (place < persons_in_round) {
    e.what = kind::person;
    e.person = {persons_++, static_cast<std::uint8_t>(below(100)), static_cast<std::uint8_t>(below(10)),
                static_cast<std::uint8_t>(below(states))};
  } else if (place < persons_in_round + auctions_in_round) {
    e.what = kind::auction;
    const bool is_hot = below(4) != 0;
    const std::int64_t seller = is_hot ? (persons_ - 1) / hot_group * hot_group : some_person();
    // An auction is open, on average, while as many others are opened as are open at once.
    const std::int64_t mean_ns = open_auctions * round_length / auctions_in_round * between_ns_;
    e.auction = {auctions_++, seller, first_category + below(categories), e.at_ns + 1 + below(2 * mean_ns)};
  } else {
    e.what = kind::bid;
    const std::int64_t oldest = std::max<std::int64_t>(0, auctions_ - open_auctions);
    const bool is_hot_auction = below(2) == 0, is_hot_bidder = below(4) != 0;
    const std::int64_t to =
        is_hot_auction ? (auctions_ - 1) / hot_group * hot_group : oldest + below(auctions_ - oldest);
    const std::int64_t from = is_hot_bidder ? (persons_ - 1) / hot_group * hot_group : some_person();
    const double magnitude = static_cast<double>(below(1'000'000)) / 1e6 * 6;
    e.bid = {to, from, static_cast<std::int64_t>(std::lround(std::pow(10.0, magnitude) * 100))};
  }
  return e;
}

}  // namespace nexmark
