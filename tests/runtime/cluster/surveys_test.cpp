// What this file is for: who has not answered a survey is known; refusals of addresses are kept for a while.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <chrono>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/cluster/dial_refusals.hpp"
#include "runtime/cluster/open_surveys.hpp"

namespace {

using namespace troupe;
using namespace troupe::detail;
using namespace std::chrono_literals;

node_id node(std::uint8_t n) {
  node_id id;
  id.bytes[0] = n;
  return id;
}
wire::self_descriptor answer_to(std::uint64_t survey, std::uint32_t slots) {
  wire::self_descriptor d;
  d.number = survey;
  d.slots = slots;
  return d;
}

TEST(open_surveys, are_complete_once_all_have_answered_or_gone) {
  open_surveys all;
  const std::uint64_t number = all.open({node(1), node(2), node(3)});
  EXPECT_FALSE(all.is_complete(number));
  EXPECT_TRUE(all.answer(node(1), answer_to(number, 4)));
  EXPECT_FALSE(all.answer(node(1), answer_to(number, 5))) << "once";
  EXPECT_FALSE(all.answer(node(4), answer_to(number, 6))) << "it was not asked";
  all.lose(node(2));
  EXPECT_FALSE(all.is_complete(number));
  EXPECT_TRUE(all.answer(node(3), answer_to(number, 7)));
  EXPECT_TRUE(all.is_complete(number));
  const open_surveys::answers got = all.close(number);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got.at(node(1)).slots, 4u);
  EXPECT_EQ(got.at(node(3)).slots, 7u);
}

TEST(open_surveys, do_not_mix_their_answers) {
  open_surveys all;
  const std::uint64_t first = all.open({node(1)}), second = all.open({node(1)});
  EXPECT_NE(first, second);
  EXPECT_TRUE(all.answer(node(1), answer_to(second, 2)));
  EXPECT_FALSE(all.is_complete(first));
  EXPECT_TRUE(all.is_complete(second));
  all.close(first);
  EXPECT_FALSE(all.answer(node(1), answer_to(first, 1))) << "too late";
}

std::vector<std::string> kept(const dial_refusals& all, dial_refusals::time_point now) {
  std::vector<std::string> texts;
  all.each(now, [&](const net::endpoint& where, const std::exception_ptr& why) {
    try {
      std::rethrow_exception(why);
    } catch (const std::exception& e) {
      texts.push_back(where.text() + " " + e.what());
    }
  });
  return texts;
}
std::exception_ptr because(const char* why) { return std::make_exception_ptr(std::runtime_error(why)); }

TEST(dial_refusals, are_the_last_of_each_address_until_it_is_reached) {
  dial_refusals all;
  const dial_refusals::time_point now{};
  all.add({"a", 1}, because("no"), now);
  all.add({"b", 2}, because("no"), now);
  all.add({"a", 1}, because("never"), now + 1s);
  EXPECT_EQ(kept(all, now + 1s), (std::vector<std::string>{"a:1 never", "b:2 no"}));
  all.remove({"a", 1});
  EXPECT_EQ(kept(all, now + 1s), std::vector<std::string>{"b:2 no"});
}

TEST(dial_refusals, are_forgotten_after_a_while) {
  dial_refusals all;
  const dial_refusals::time_point now{};
  all.add({"a", 1}, because("no"), now);
  EXPECT_EQ(kept(all, now + dial_refusals::kept_for).size(), 1u);
  EXPECT_EQ(kept(all, now + dial_refusals::kept_for + 1s).size(), 0u);
}

TEST(dial_refusals, are_bounded) {
  dial_refusals all;
  const dial_refusals::time_point now{};
  for (std::uint16_t port = 1; port <= dial_refusals::kept_max + 10; ++port) all.add({"a", port}, because("no"), now);
  EXPECT_EQ(kept(all, now).size(), dial_refusals::kept_max);
  all.add({"a", 1}, because("known"), now);
  EXPECT_EQ(kept(all, now).size(), dial_refusals::kept_max);
}

}  // namespace
