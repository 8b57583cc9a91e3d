// What this file is for: the accounting of named amounts.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>
#include <vector>

#include <troupe/error.hpp>

#include "actors/logic/scheduling/resources.hpp"

namespace {

using namespace troupe;
using logic::resources;
using request = std::vector<resource>;

template <class F>
std::optional<error> thrown_by(F&& f) {
  try {
    f();
  } catch (const error& e) {
    return e;
  }
  return std::nullopt;
}

double free_of(const resources& r, const std::string& name) {
  for (const resource& have : r.free())
    if (have.name == name) return have.amount;
  return -1;
}

TEST(resources, are_exact_after_ten_thousand_random_takes_and_gives) {
  const request total{{"io", 50}, {"net", 7}, {"disk", 0.5}};
  resources r(total);
  std::mt19937 random(7);
  std::vector<request> held;
  double io = 50, net = 7, disk = 0.5;
  for (int step = 0; step < 10'000; ++step) {
    if (random() % 2 == 0 && !held.empty()) {
      const std::size_t i = random() % held.size();
      r.give(held[i]);
      io += held[i][0].amount, net += held[i][1].amount, disk += held[i][2].amount;
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      const request wanted{{"io", static_cast<double>(random() % 20)},
                           {"net", static_cast<double>(random() % 4)},
                           {"disk", static_cast<double>(random() % 3) * 0.25},
                           {"cpu", 1}};
      const bool fits = wanted[0].amount <= io && wanted[1].amount <= net && wanted[2].amount <= disk;
      ASSERT_EQ(r.take(wanted), fits) << step;
      if (fits) {
        io -= wanted[0].amount, net -= wanted[1].amount, disk -= wanted[2].amount;
        held.push_back(wanted);
      }
    }
    ASSERT_EQ(free_of(r, "io"), io);
    ASSERT_EQ(free_of(r, "net"), net);
    ASSERT_EQ(free_of(r, "disk"), disk);
  }
  for (const request& h : held) r.give(h);
  for (const resource& t : total) EXPECT_EQ(free_of(r, t.name), t.amount) << t.name;
}

TEST(resources, are_taken_all_or_none) {
  resources r({{"a", 5}, {"b", 1}});
  EXPECT_FALSE(r.take({{"a", 2}, {"b", 2}}));
  EXPECT_EQ(free_of(r, "a"), 5);
  EXPECT_EQ(free_of(r, "b"), 1);
}

TEST(resources, refuse_a_request_for_what_is_not_configured_and_name_it) {
  const auto e = thrown_by([] { resources({{"io", 1}}).check({{"recorded", 1}}); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::no_resource);
  EXPECT_NE(std::string(e->what()).find("recorded"), std::string::npos) << e->what();
}

TEST(resources, refuse_a_request_for_more_than_there_will_ever_be) {
  resources r({{"io", 4}});
  EXPECT_FALSE(thrown_by([&] { r.check({{"io", 4}}); }));
  const auto e = thrown_by([&] { r.check({{"io", 4.5}}); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::no_resource);
}

TEST(resources, are_checked_against_the_total_and_not_against_what_is_free) {
  resources r({{"io", 4}});
  ASSERT_TRUE(r.take({{"io", 4}}));
  EXPECT_FALSE(thrown_by([&] { r.check({{"io", 4}}); }));
}

TEST(resources, refuse_negative_amounts_of_a_request) {
  const auto e = thrown_by([] { resources({{"io", 4}}).check({{"io", -1}}); });
  ASSERT_TRUE(e);
  EXPECT_EQ(e->code(), errc::bad_argument);
}

TEST(resources, know_how_many_slots_a_request_means) {
  EXPECT_EQ(logic::slots_of({}), 1);
  EXPECT_EQ(logic::slots_of({{"io", 3}}), 1);
  EXPECT_EQ(logic::slots_of({{"cpu", 0}}), 0);
  EXPECT_EQ(logic::slots_of({{"cpu", 0.5}}), 1);
  EXPECT_EQ(logic::slots_of({{"io", 1}, {"cpu", 4}}), 4);
  EXPECT_EQ(logic::slots_of({{"cpu", 2}, {"cpu", 4}}), 2) << "the call's, then the kernel's";
  resources({}).check({{"cpu", 2}});
}

TEST(resources, refuse_parts_of_slots_beyond_one) {
  for (const double amount : {1.5, 70000.0, resource::all}) {
    const auto e = thrown_by([&] { resources({}).check({{"cpu", amount}}); });
    ASSERT_TRUE(e) << amount;
    EXPECT_EQ(e->code(), errc::bad_argument);
  }
}

TEST(resources, refuse_a_wrong_configuration) {
  for (const request& wrong : std::vector<request>{{{"cpu", 3}}, {{"", 1}}, {{"io", -1}}, {{"io", 1}, {"io", 2}}}) {
    const auto e = thrown_by([&] { resources r(wrong); });
    ASSERT_TRUE(e) << wrong[0].name;
    EXPECT_EQ(e->code(), errc::bad_argument) << wrong[0].name;
  }
}

// A name said twice in one request (once on the kernel, once on the call) counts twice.
TEST(resources, never_go_below_zero_when_a_request_names_one_twice) {
  resources r({{"io", 3}});
  const request twice{{"io", 2}, {"io", 2}};
  bool refused = false;
  try {
    r.check(twice);
  } catch (const error&) {
    refused = true;
  }
  if (!refused) r.take(twice);
  EXPECT_GE(free_of(r, "io"), 0);
}

}  // namespace
