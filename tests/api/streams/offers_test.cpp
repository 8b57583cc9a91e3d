// What this file is for: stages that are offered and taken by name.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <ranges>
#include <string>
#include <vector>

#include <troupe/stream.hpp>
#include <troupe/troupe.hpp>

#include "ledgers.hpp"

namespace {

namespace st = troupe::stream;

// Withdrawn when the test ends.
struct offered_here {
  std::string name;
  ~offered_here() { st::withdraw(name); }
};

void offer_plus(const std::string& name) {
  st::offer<int, std::string>(name, [](const st::flow<int>& f, const std::string& by) {
    return f | st::map("add " + by, [n = std::stoi(by)](int i) { return i + n; }) |
           st::map("text " + by, [](int i) { return std::to_string(i); }, {.parallel = 2});
  });
}

TEST(stream_offers, stages_are_taken_by_name_with_arguments_more_than_once) {
  const offered_here plus{"test.plus"};
  offer_plus(plus.name);
  troupe::runtime rt(troupe::options{.threads = 2});
  std::vector<std::string> got;
  auto p = st::from("numbers", std::views::iota(0, 3)) | st::offered<std::string>(plus.name, "10") |
           st::map("number", [](const std::string& s) { return std::stoi(s); }) |
           st::offered<std::string>(plus.name, "200") |
           st::sink("end", [&](const std::string& s) { got.push_back(s); });
  auto r = p.start(rt);
  ASSERT_TRUE(r.wait_for(test::patience));
  EXPECT_EQ(got, (std::vector<std::string>{"210", "211", "212"}));
}

TEST(stream_offers, names_are_taken_once_and_wrong_ones_are_refused) {
  const offered_here plus{"test.once"};
  offer_plus(plus.name);
  const auto refused = [](auto f, const std::string& because) {
    try {
      f();
      ADD_FAILURE() << "it was not refused";
    } catch (const troupe::error& e) {
      EXPECT_EQ(e.code(), troupe::errc::bad_argument);
      EXPECT_NE(std::string(e.what()).find(because), std::string::npos) << e.what();
    }
  };
  refused([&] { offer_plus(plus.name); }, "'test.once'");
  refused([] { offer_plus(""); }, "without a name");
  const auto numbers = [] { return st::from("numbers", std::views::iota(0, 3)); };
  refused([&] { numbers() | st::offered<std::string>("test.nothing"); }, "'test.nothing'");
  refused([&] { numbers() | st::offered<int>(plus.name, "1"); }, "'test.once'");
  refused([&] { st::from("texts", std::vector<std::string>{}) | st::offered<std::string>(plus.name, "1"); },
          "'test.once'");
  bool is_listed = false;
  for (const st::offer_description& o : st::offers())
    is_listed = is_listed || (o.name == plus.name && o.in == "int" && o.out.find("basic_string") != o.out.npos);
  EXPECT_TRUE(is_listed);
  EXPECT_TRUE(st::withdraw(plus.name));
  EXPECT_FALSE(st::withdraw(plus.name));
  refused([&] { numbers() | st::offered<std::string>(plus.name, "1"); }, "'test.once'");
}

}  // namespace
