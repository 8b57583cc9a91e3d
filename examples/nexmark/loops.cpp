// What this file is for: the queries as loops, as somebody would write them who knows that all events are in memory and
// in order: what streams are measured against.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <deque>
#include <map>
#include <queue>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "answers.hpp"

namespace nexmark {

namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

void all_bids(std::span<const event> all, answer& to) {
  for (const event& e : all)
    if (e.what == kind::bid) to.add(e.bid.auction, e.bid.bidder, e.bid.price, e.at_ns);
}
void other_currency(std::span<const event> all, answer& to) {
  for (const event& e : all)
    if (e.what == kind::bid) to.add(e.bid.auction, e.bid.bidder, e.bid.price * 908 / 1000);
}
void some_auctions(std::span<const event> all, answer& to) {
  for (const event& e : all)
    if (e.what == kind::bid && e.bid.auction % 123 == 0) to.add(e.bid.auction, e.bid.price);
}
void sellers_in_states(std::span<const event> all, answer& to) {
  std::unordered_map<std::int64_t, person> persons;
  std::unordered_map<std::int64_t, std::vector<std::int64_t>> auctions;
  const auto tell = [&](const person& p, std::int64_t id) { to.add(p.name, p.city, p.state, id); };
  for (const event& e : all) {
    if (e.what == kind::person && e.person.state <= california) {
      persons.emplace(e.person.id, e.person);
      if (const auto found = auctions.find(e.person.id); found != auctions.end())
        for (const std::int64_t id : found->second) tell(e.person, id);
    } else if (e.what == kind::auction && e.auction.category == 10) {
      auctions[e.auction.seller].push_back(e.auction.id);
      if (const auto found = persons.find(e.auction.seller); found != persons.end()) tell(found->second, e.auction.id);
    }
  }
}

// Calls `then` with each auction that has bids and its highest one, in the order in which they close.
template <class Then>
void each_closed(std::span<const event> all, Then then) {
  struct open_auction {
    auction of;
    std::int64_t price = -1;
  };
  using due = std::pair<std::int64_t, std::int64_t>;
  std::unordered_map<std::int64_t, open_auction> open;
  std::priority_queue<due, std::vector<due>, std::greater<>> ends;
  const auto close = [&] {
    const auto at = open.find(ends.top().second);
    ends.pop();
    if (at->second.price >= 0) then(at->second.of, at->second.price);
    open.erase(at);
  };
  for (const event& e : all) {
    while (!ends.empty() && ends.top().first < e.at_ns) close();
    if (e.what == kind::auction) {
      open[e.auction.id] = {e.auction, -1};
      ends.emplace(e.auction.expires_ns, e.auction.id);
    } else if (e.what == kind::bid) {
      if (const auto at = open.find(e.bid.auction); at != open.end())
        at->second.price = std::max(at->second.price, e.bid.price);
    }
  }
  while (!ends.empty()) close();
}
void category_means(std::span<const event> all, answer& to) {
  std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> means;
  each_closed(all, [&](const auction& a, std::int64_t price) {
    auto& [sum, count] = means[a.category];
    sum += price;
    ++count;
  });
  for (const auto& [category, mean] : means) to.add(category, mean.first, mean.second);
}
void seller_means(std::span<const event> all, answer& to) {
  struct last_ten {
    std::deque<std::int64_t> prices;
    std::int64_t sum = 0;
  };
  std::unordered_map<std::int64_t, last_ten> sellers;
  each_closed(all, [&](const auction& a, std::int64_t price) {
    last_ten& s = sellers[a.seller];
    s.prices.push_back(price);
    s.sum += price;
    if (s.prices.size() > 10) {
      s.sum -= s.prices.front();
      s.prices.pop_front();
    }
    to.add(a.seller, a.id, s.sum, static_cast<std::int64_t>(s.prices.size()));
  });
}

void hot_auctions(std::span<const event> all, answer& to) {
  // Bids are counted for each 2 s; a window is five of those.
  constexpr std::int64_t pane_ns = 2 * second_ns, panes = 5;
  using counts = std::unordered_map<std::int64_t, std::int64_t>;
  std::deque<counts> last;  // of the panes up to `now`
  std::int64_t now = 0;
  bool begun = false;
  const auto end_pane = [&] {
    counts sum;
    for (const counts& c : last)
      for (const auto& [auction, n] : c) sum[auction] += n;
    std::int64_t most = 0;
    for (const auto& [auction, n] : sum) most = std::max(most, n);
    for (const auto& [auction, n] : sum)
      if (n == most) to.add((now + 1) * pane_ns, auction, n);
    last.emplace_back();
    if (static_cast<std::int64_t>(last.size()) > panes) last.pop_front();
    ++now;
  };
  for (const event& e : all) {
    if (e.what != kind::bid) continue;
    const std::int64_t pane = e.at_ns / pane_ns;
    if (!begun) {
      begun = true;
      now = pane;
      last.emplace_back();
    }
    while (now < pane) end_pane();
    ++last.back()[e.bid.auction];
  }
  for (std::int64_t i = 0; begun && i < panes; ++i) end_pane();
}
void highest_bids(std::span<const event> all, answer& to) {
  constexpr std::int64_t window_ns = 10 * second_ns;
  std::int64_t now = -1, price = -1;
  std::vector<std::pair<std::int64_t, std::int64_t>> of;
  const auto end_window = [&] {
    for (const auto& [auction, bidder] : of) to.add((now + 1) * window_ns, auction, bidder, price);
    of.clear();
    price = -1;
  };
  for (const event& e : all) {
    if (e.what != kind::bid) continue;
    if (const std::int64_t window = e.at_ns / window_ns; window != now) {
      end_window();
      now = window;
    }
    if (e.bid.price < price) continue;
    if (e.bid.price > price) of.clear();
    price = e.bid.price;
    of.emplace_back(e.bid.auction, e.bid.bidder);
  }
  end_window();
}
void new_sellers(std::span<const event> all, answer& to) {
  constexpr std::int64_t window_ns = 10 * second_ns;
  std::int64_t now = -1;
  std::unordered_map<std::int64_t, std::uint8_t> names;
  std::unordered_set<std::int64_t> sellers;
  for (const event& e : all) {
    if (const std::int64_t window = e.at_ns / window_ns; window != now) {
      names.clear();
      sellers.clear();
      now = window;
    }
    if (e.what == kind::person) {
      names.emplace(e.person.id, e.person.name);
      if (sellers.contains(e.person.id)) to.add(e.person.id, e.person.name);
    } else if (e.what == kind::auction && sellers.insert(e.auction.seller).second) {
      if (const auto found = names.find(e.auction.seller); found != names.end()) to.add(found->first, found->second);
    }
  }
}

}  // namespace

answer by_loop(int query, std::span<const event> all, bool keeps_rows) {
  using loop = void (*)(std::span<const event>, answer&);
  constexpr loop queries[] = {all_bids,     other_currency, some_auctions, sellers_in_states, category_means,
                              hot_auctions, seller_means,   highest_bids,  new_sellers};
  answer to(keeps_rows);
  queries[query](all, to);
  return to;
}

}  // namespace nexmark
