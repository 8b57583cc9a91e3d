// What this file is for: the rules by which one session of two processes stays, in every order of events.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/tcp/peers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <set>
#include <vector>

namespace {

using namespace troupe::net;
using namespace troupe::net::tcp;

identity who(std::uint8_t first, std::uint64_t incarnation = 1) {
  identity i;
  i.id.bytes[0] = first;
  i.incarnation = incarnation;
  return i;
}

hello says(const identity& i, channel kind, std::uint64_t number, std::uint64_t last = 0) {
  return {.kind = kind, .number = number, .last = last, .who = i};
}

/// Two processes and what is on its way between them. Each dials the other once; then, if wished, one loses the session
/// before the other knows, and dials again.
class world {
 public:
  world() {
    dial(0);
    dial(1);
  }

  std::size_t choices() const { return wires_.size(); }
  /// The end of a session is not seen before its answer: both come by the same connection.
  bool ready(std::size_t which) const {
    return wires_[which].at != stage::close || std::none_of(wires_.begin(), wires_.end(), [&](const wire& o) {
             return o.number == wires_[which].number && o.at == stage::bulk_answer;
           });
  }
  /// Delivers what is first on that wire.
  void step(std::size_t which) {
    wire& w = wires_[which];
    const bool over = advance(w);
    if (over) wires_.erase(wires_.begin() + static_cast<std::ptrdiff_t>(which));
  }
  void lose(int side) {
    const std::uint64_t number = *live_[side];
    end(side, number);
    wires_.push_back({.from = side, .number = number, .at = stage::close});
    dial(side);
  }

  /// Dials anew from that side, for which the session has become silent.
  void replace(int side) { dial(side, *live_[side]); }

  std::optional<std::uint64_t> live(int side) const { return live_[side]; }
  int ups(int side) const { return ups_[side]; }

 private:
  enum class stage { control_hello, control_answer, bulk_connects, bulk_hello, bulk_answer, close };
  struct wire {
    int from;
    std::uint64_t number;
    stage at = stage::control_hello;
    hello_result answered = hello_result::welcome;
    std::uint64_t last = 0, instead = 0;
  };

  void dial(int side, std::uint64_t instead = 0) {
    wires_.push_back({.from = side, .number = ++numbers_, .instead = instead});
  }
  void begin(int side, std::uint64_t number) {
    if (live_[side] && *live_[side] != number) {
      const std::uint64_t old = *live_[side];
      end(side, old);
      wires_.push_back({.from = side, .number = old, .at = stage::close});
    }
    rules_[side].begins(ids_[1 - side], number);
    live_[side] = number;
    ++ups_[side];
  }
  void end(int side, std::uint64_t number) {
    rules_[side].ended(ids_[1 - side].id, number);
    if (live_[side] == number) live_[side].reset();
  }
  bool advance(wire& w) {
    const int here = w.from, there = 1 - w.from;
    peers &mine = rules_[here], &theirs = rules_[there];
    const node_id& other = ids_[there].id;
    const auto moved_on = [&](stage to) {
      w.at = to;
      return false;
    };
    switch (w.at) {
      case stage::control_hello:
        w.answered = theirs.asked(says(ids_[here], channel::control, w.number));
        return moved_on(stage::control_answer);
      case stage::control_answer:
        if (w.answered != hello_result::welcome ||
            mine.dialled(ids_[there], w.number, w.instead) != hello_result::welcome)
          return true;
        return moved_on(stage::bulk_connects);
      case stage::bulk_connects:
        if (!mine.wanted(other, w.number)) {
          mine.gave_up(other, w.number);
          return true;
        }
        w.last = mine.last(other);
        return moved_on(stage::bulk_hello);
      case stage::bulk_hello: {
        w.answered = theirs.asked(says(ids_[here], channel::bulk, w.number, w.last));
        const wire kept = w;
        w.at = stage::bulk_answer;
        if (kept.answered == hello_result::welcome) begin(there, kept.number);
        return false;
      }
      case stage::bulk_answer: {
        const wire kept = w;
        if (kept.answered != hello_result::welcome) {
          mine.gave_up(other, kept.number);
        } else if (mine.confirmed(ids_[there], kept.number)) {
          begin(here, kept.number);
        } else {
          wires_.push_back({.from = here, .number = kept.number, .at = stage::close});
        }
        return true;
      }
      case stage::close:
        if (live_[there] == w.number) end(there, w.number);
        return true;
    }
    return true;
  }

  std::array<identity, 2> ids_{who(1), who(2)};
  std::array<peers, 2> rules_{peers(ids_[0].id), peers(ids_[1].id)};
  std::array<std::optional<std::uint64_t>, 2> live_;
  std::array<int, 2> ups_{};
  std::uint64_t numbers_ = 0;
  std::deque<wire> wires_;
};

template <class F>
void every_order(const world& w, int depth, const F& end) {
  ASSERT_LT(depth, 60);
  if (w.choices() == 0) return end(w);
  for (std::size_t i = 0; i < w.choices(); ++i) {
    if (!w.ready(i)) continue;
    world next = w;
    next.step(i);
    every_order(next, depth + 1, end);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(peers, come_to_one_session_in_every_order_of_two_dials) {
  int ends = 0;
  std::set<std::uint64_t> kept;
  every_order(world(), 0, [&](const world& w) {
    ++ends;
    ASSERT_TRUE(w.live(0)) << "no session is left";
    ASSERT_EQ(w.live(0), w.live(1));
    ASSERT_EQ(w.ups(0), 1);
    ASSERT_EQ(w.ups(1), 1);
    kept.insert(*w.live(0));
  });
  EXPECT_GT(ends, 100);
  EXPECT_EQ(kept.size(), 2u) << "either dial may win";
}

TEST(peers, come_to_one_session_again_whoever_lost_it_and_dials) {
  for (const int loser : {0, 1}) {
    int ends = 0;
    every_order(world(), 0, [&](const world& up) {
      if (ends > 2000) return;
      world lost = up;
      lost.lose(loser);
      every_order(lost, 0, [&](const world& w) {
        ++ends;
        ASSERT_TRUE(w.live(0)) << "no session is left";
        ASSERT_EQ(w.live(0), w.live(1));
        ASSERT_EQ(w.ups(0), 2);
        ASSERT_EQ(w.ups(1), 2);
      });
    });
    EXPECT_GT(ends, 1000);
  }
}

TEST(peers, come_to_one_new_session_whoever_finds_the_old_one_silent) {
  for (const std::set<int>& who_dials : {std::set{0}, std::set{1}, std::set{0, 1}}) {
    int ends = 0;
    every_order(world(), 0, [&](const world& up) {
      if (ends > 5000) return;
      world silent = up;
      const std::uint64_t old = *up.live(0);
      for (const int side : who_dials) silent.replace(side);
      every_order(silent, 0, [&](const world& w) {
        ++ends;
        ASSERT_TRUE(w.live(0)) << "no session is left";
        ASSERT_EQ(w.live(0), w.live(1));
        ASSERT_NE(*w.live(0), old) << "nothing has become of it";
        for (const int side : {0, 1}) {
          ASSERT_GE(w.ups(side), 2);
          ASSERT_LE(w.ups(side), 1 + static_cast<int>(who_dials.size()));
        }
      });
    });
    EXPECT_GT(ends, 100);
  }
}

TEST(peers, do_not_replace_a_session_by_a_dial_that_was_meant_for_another) {
  peers p(who(1).id);
  p.begins(who(2), 11);
  EXPECT_EQ(p.dialled(who(2), 12, 10), hello_result::duplicate) << "the one that it was meant for has been replaced";
  EXPECT_EQ(p.dialled(who(2), 12, 11), hello_result::welcome);
  EXPECT_TRUE(p.wanted(who(2).id, 12));
  EXPECT_EQ(p.last(who(2).id), 11u) << "the peer is told which one is given up";
  p.begins(who(2), 13);  // the peer's own dial was faster
  EXPECT_FALSE(p.wanted(who(2).id, 12));
  EXPECT_FALSE(p.confirmed(who(2), 12));
}

TEST(peers, admit_the_one_who_lost_a_session_that_the_other_believes_in) {
  peers smaller(who(1).id), larger(who(2).id);
  smaller.begins(who(2), 10);
  larger.begins(who(1), 10);
  // The larger has lost it, and dials.
  larger.ended(who(1).id, 10);
  EXPECT_EQ(larger.dialled(who(1), 11), hello_result::welcome);
  EXPECT_EQ(smaller.asked(says(who(2), channel::control, 11)), hello_result::welcome);
  EXPECT_EQ(smaller.asked(says(who(2), channel::bulk, 11, larger.last(who(1).id))), hello_result::welcome);
  // A peer that has not seen that session end means another thing: its dial has crossed with it.
  EXPECT_EQ(smaller.asked(says(who(2), channel::bulk, 11, 9)), hello_result::duplicate);
  // The smaller is believed.
  peers other(who(2).id);
  other.begins(who(1), 10);
  EXPECT_EQ(other.asked(says(who(1), channel::bulk, 12)), hello_result::welcome);
}

TEST(peers, know_themselves_the_restarted_and_the_outdated) {
  peers p(who(1).id);
  EXPECT_EQ(p.asked(says(who(1), channel::control, 1)), hello_result::yourself);
  EXPECT_EQ(p.dialled(who(1, 5), 1), hello_result::yourself);
  p.begins(who(2, 5), 1);
  EXPECT_EQ(p.asked(says(who(2, 4), channel::bulk, 2, 1)), hello_result::outdated);
  EXPECT_EQ(p.dialled(who(2, 4), 2), hello_result::outdated);
  EXPECT_EQ(p.dialled(who(2, 5), 2), hello_result::duplicate);
  EXPECT_EQ(p.asked(says(who(2, 6), channel::bulk, 2)), hello_result::welcome);
  EXPECT_EQ(p.dialled(who(2, 6), 3), hello_result::welcome);
  EXPECT_TRUE(p.confirmed(who(2, 6), 3));
}

}  // namespace
