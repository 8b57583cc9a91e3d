// What this file is for: one member whose peers say what the test makes them say, and whose time the test lets pass.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "actors/logic/membership/membership.hpp"

namespace membership_suite {

using namespace std::chrono_literals;
using namespace troupe::detail;
using namespace troupe::logic;

inline node_id id_of(std::uint8_t n) {
  node_id id;
  id.bytes[0] = n;
  return id;
}
inline node_address address_of(std::uint8_t n) { return {"10.0.0." + std::to_string(n), 4711}; }
inline node_record record_of(std::uint8_t n, node_claim c = node_claim::live, std::uint32_t round = 0,
                             std::uint64_t life = 1) {
  return {id_of(n), life, round, c, {address_of(n)}};
}

/// Node 5 and its peers, which say what the test makes them say.
class membership_of : public testing::Test {
 protected:
  static constexpr auto me = std::uint8_t{5};

  void up(std::uint8_t n, std::uint64_t life = 1) {
    m.session_up(id_of(n), life, {address_of(n)}, {}, now);
    collect();
  }
  void say(std::uint8_t n, membership_message what) {
    m.message(id_of(n), what, now);
    collect();
  }
  void hello(std::uint8_t n, bool knows = false, std::optional<node_record> of_me = {}, std::uint32_t round = 0,
             std::uint64_t life = 1) {
    say(n, node_hello{record_of(n, node_claim::live, round, life), knows, of_me, 2, 0});
  }
  void join(std::uint8_t n) {
    up(n);
    hello(n);
  }
  void down(std::uint8_t n) {
    m.session_down(id_of(n), now);
    collect();
  }
  void news(std::uint8_t from, const node_record& r) { say(from, node_news{false, false, {r}}); }
  /// Time passes, by the timer; those peers are heard all along.
  void pass(std::chrono::milliseconds d, std::initializer_list<std::uint8_t> heard = {}) {
    const auto end = now + d;
    while (now < end) {
      now = std::min(end, std::max(now + 1ms, m.wake()));
      for (const std::uint8_t n : heard) m.heard(id_of(n), now);
      m.tick(now);
      collect();
    }
  }
  /// The peer hears this node, and says so.
  void talk(std::uint8_t n, std::chrono::milliseconds d) {
    for (auto t = 0ms; t < d; t += 250ms) {
      pass(250ms);
      say(n, beat(static_cast<std::uint64_t>(t / 250ms + 1), own_time_said()));
    }
  }
  static node_beat beat(std::uint64_t sent, std::uint64_t heard) { return {false, 0, 0, {}, 0, sent, heard}; }
  /// In its last heartbeat.
  std::uint64_t own_time_said() { return said<node_beat>().back().second.sent; }
  void collect() {
    for (auto& a : m.take()) done.push_back(std::move(a));
  }
  /// Returns what membership has wanted of that kind since the last time it was asked.
  template <class T>
  std::vector<T> taken() {
    std::vector<T> all;
    for (const auto& a : done)
      if (const T* t = std::get_if<T>(&a)) all.push_back(*t);
    std::erase_if(done, [](const auto& a) { return std::holds_alternative<T>(a); });
    return all;
  }
  template <class M>
  std::vector<std::pair<node_id, M>> said() {
    std::vector<std::pair<node_id, M>> all;
    for (const auto& a : done)
      if (const auto* s = std::get_if<membership::send>(&a))
        if (const M* x = std::get_if<M>(&s->message)) all.emplace_back(s->to, *x);
    return all;
  }
  node_state state(std::uint8_t n) const { return m.state_of(id_of(n)); }

  membership::time_point now{1h};
  membership m{id_of(me), 1, {address_of(me)}, {}, now};
  std::vector<membership::action> done;
};

}  // namespace membership_suite
