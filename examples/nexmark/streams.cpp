// What this file is for: the queries as streams.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <chrono>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <troupe/stream.hpp>
#include <troupe/troupe.hpp>

#include "answers.hpp"

namespace nexmark {

namespace st = troupe::stream;
using namespace std::chrono_literals;

namespace {

bool is_bid(const event& e) { return e.what == kind::bid; }
std::int64_t auction_of_bid(const event& e) { return e.bid.auction; }
st::event_point point(std::int64_t ns) { return st::event_point(std::chrono::nanoseconds(ns)); }

auto events_of(std::span<const event> all) { return st::from("events", all); }
auto timed_bids(std::span<const event> all) {
  return events_of(all) | st::filter("bids", is_bid) | st::event_time("time", &event::at_ns);
}
// Persons and auctions, apart.
auto sides(std::span<const event> all) {
  return events_of(all) | st::filter("no bids", [](const event& e) { return e.what != kind::bid; }) |
         st::event_time("time", &event::at_ns) |
         st::route<2>("kinds", [](const event& e) { return static_cast<std::size_t>(e.what); });
}

struct closed_auction {
  std::int64_t id, seller, category, price;
};
// The highest bid of each auction, when its time is over; none of those without bids.
auto closed(std::span<const event> all) {
  struct open_auction {
    auction of{};
    std::int64_t since_ns = 0, price = -1;
  };
  return events_of(all) | st::filter("no persons", [](const event& e) { return e.what != kind::person; }) |
         st::event_time("time", &event::at_ns) |
         st::key_by([](const event& e) { return e.what == kind::bid ? e.bid.auction : e.auction.id; }) |
         st::process<closed_auction>(
             "closing", std::optional<open_auction>(),
             [](auto& c, std::optional<open_auction>& s, const event& e) {
               if (e.what == kind::auction) {
                 s = {e.auction, e.at_ns, -1};
                 c.wake_at(point(e.auction.expires_ns + 1));
               } else if (s && e.at_ns <= s->of.expires_ns) {
                 s->price = std::max(s->price, e.bid.price);
               }
             },
             [](auto& c, std::optional<open_auction>& s) {
               if (s->price >= 0) c.emit({s->of.id, s->of.seller, s->of.category, s->price});
               c.forget();
             });
}

st::pipeline all_bids(std::span<const event> all, answer& to) {
  return events_of(all) | st::filter("bids", is_bid) |
         st::sink("rows", [&](const event& e) { to.add(e.bid.auction, e.bid.bidder, e.bid.price, e.at_ns); });
}
st::pipeline other_currency(std::span<const event> all, answer& to) {
  return events_of(all) | st::filter("bids", is_bid) |
         st::map("convert",
                 [](event&& e) {
                   bid b = e.bid;
                   b.price = b.price * 908 / 1000;
                   return b;
                 }) |
         st::sink("rows", [&](const bid& b) { to.add(b.auction, b.bidder, b.price); });
}
st::pipeline some_auctions(std::span<const event> all, answer& to) {
  return events_of(all) | st::filter("bids", [](const event& e) { return is_bid(e) && e.bid.auction % 123 == 0; }) |
         st::sink("rows", [&](const event& e) { to.add(e.bid.auction, e.bid.price); });
}
st::pipeline sellers_in_states(std::span<const event> all, answer& to) {
  constexpr auto for_ever = std::chrono::nanoseconds::max();
  auto [persons, auctions] = sides(all);
  return st::join("sellers",
                  persons | st::filter("states", [](const event& e) { return e.person.state <= california; }) |
                      st::key_by([](const event& e) { return e.person.id; }),
                  auctions | st::filter("category", [](const event& e) { return e.auction.category == 10; }) |
                      st::key_by([](const event& e) { return e.auction.seller; }),
                  st::within(for_ever),
                  [](const event& p, const event& a) {
                    return row{p.person.name, p.person.city, p.person.state, a.auction.id};
                  }) |
         st::sink("rows", [&](const row& r) { to.add(r[0], r[1], r[2], r[3]); });
}
st::pipeline category_means(std::span<const event> all, answer& to) {
  struct mean {
    std::int64_t sum = 0, count = 0;
  };
  return closed(all) | st::key_by(&closed_auction::category) |
         st::process<row>("means", mean(),
                          [](auto& c, mean& m, const closed_auction& a) {
                            m = {m.sum + a.price, m.count + 1};
                            c.emit({a.category, m.sum, m.count, 0});
                          }) |
         st::sink("rows", [&](const row& r) { to.add(r[0], r[1], r[2]); });
}
st::pipeline hot_auctions(std::span<const event> all, answer& to) {
  using counted = st::windowed<std::int64_t, std::uint64_t>;
  struct top {
    std::uint64_t bids = 0;
    std::vector<std::int64_t> auctions;
  };
  // What windows say has the time of their end, so those that end together are in one window of 2 s.
  return timed_bids(all) | st::key_by(auction_of_bid) | st::window("bids_each", st::sliding(10s, 2s), {}, st::count()) |
         st::window("hottest", st::tumbling(2s), {},
                    st::fold(top(),
                             [](top& t, const counted& c) {
                               if (c.value < t.bids) return;
                               if (c.value > t.bids) t = {c.value, {}};
                               t.auctions.push_back(c.key);
                             })) |
         st::sink("rows", [&](const st::windowed<st::all_items, top>& w) {
           for (const std::int64_t a : w.value.auctions)
             to.add(w.window.end.time_since_epoch().count(), a, static_cast<std::int64_t>(w.value.bids));
         });
}
st::pipeline seller_means(std::span<const event> all, answer& to) {
  struct last_ten {
    std::deque<std::int64_t> prices;
    std::int64_t sum = 0;
  };
  return closed(all) | st::key_by(&closed_auction::seller) |
         st::process<row>("means", last_ten(),
                          [](auto& c, last_ten& s, const closed_auction& a) {
                            s.prices.push_back(a.price);
                            s.sum += a.price;
                            if (s.prices.size() > 10) {
                              s.sum -= s.prices.front();
                              s.prices.pop_front();
                            }
                            c.emit({a.seller, a.id, s.sum, static_cast<std::int64_t>(s.prices.size())});
                          }) |
         st::sink("rows", [&](const row& r) { to.add(r[0], r[1], r[2], r[3]); });
}
st::pipeline highest_bids(std::span<const event> all, answer& to) {
  struct best {
    std::int64_t price = -1;
    std::vector<std::pair<std::int64_t, std::int64_t>> of;  // auction and bidder
  };
  return timed_bids(all) |
         st::window("highest", st::tumbling(10s), {},
                    st::fold(best(),
                             [](best& b, const event& e) {
                               if (e.bid.price < b.price) return;
                               if (e.bid.price > b.price) b = {e.bid.price, {}};
                               b.of.emplace_back(e.bid.auction, e.bid.bidder);
                             })) |
         st::sink("rows", [&](const st::windowed<st::all_items, best>& w) {
           for (const auto& [auction, bidder] : w.value.of)
             to.add(w.window.end.time_since_epoch().count(), auction, bidder, w.value.price);
         });
}
st::pipeline new_sellers(std::span<const event> all, answer& to) {
  auto [persons, auctions] = sides(all);
  return st::join("sellers", persons | st::key_by([](const event& e) { return e.person.id; }),
                  auctions | st::key_by([](const event& e) { return e.auction.seller; }), st::same_window(10s),
                  [](const event& p, const event&) { return std::pair(p.person.id, p.person.name); }) |
         st::key_by([](const auto& p) { return p.first; }) |
         st::process<std::pair<std::int64_t, std::uint8_t>>("once", false,
                                                            [](auto& c, bool& is_told, const auto& p) {
                                                              if (!std::exchange(is_told, true)) c.emit(p);
                                                            },
                                                            st::no_times(), {.keep = 10s}) |
         st::sink("rows", [&](const auto& p) { to.add(p.first, p.second); });
}

// Of running means the last one of each category counts.
answer last_of_each(const answer& running, bool keeps_rows) {
  std::map<std::int64_t, row> last;
  for (const row& r : running.sorted()) {
    const auto at = last.emplace(r[0], r).first;
    if (r[2] > at->second[2]) at->second = r;  // the one with the largest count
  }
  answer a(keeps_rows);
  for (const auto& [category, r] : last) a.add(r[0], r[1], r[2]);
  return a;
}

}  // namespace

answer by_stream(troupe::runtime& rt, int query, std::span<const event> all, bool keeps_rows) {
  using make = st::pipeline (*)(std::span<const event>, answer&);
  constexpr make queries[] = {all_bids,     other_currency, some_auctions, sellers_in_states, category_means,
                              hot_auctions, seller_means,   highest_bids,  new_sellers};
  constexpr int means = 4;
  answer to(keeps_rows || query == means);
  auto p = queries[query](all, to);
  p.start(rt, {.name = "q" + std::to_string(query)}).wait();
  return query == means ? last_of_each(to, keeps_rows) : to;
}

}  // namespace nexmark
