// What this file is for: `troupe nodes`: what it shows of nodes that have worked for each other.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <troupe/offer.hpp>
#include <troupe/troupe.hpp>

#include "tests/api/json.hpp"
#include "tests/api/nodes/several_nodes.hpp"
#include "tests/support/processes.hpp"

namespace {

using namespace std::chrono_literals;
using test::ended_with;
using test::finished;
using test::json;
using test::node_options;
using testing::HasSubstr;
using troupe::index_t;

constexpr auto add = troupe::kernel<troupe::inout<char, 1>>("shown.add").on(troupe::cpu, [](troupe::view<char, 1> a) {
  for (index_t i = a.lo(0); i < a.hi(0); ++i) ++a(i);
});
// Makes bytes that cannot be packed.
constexpr auto noise = troupe::kernel<troupe::out<char, 1>>("shown.noise").on(troupe::cpu, [](troupe::view<char, 1> a) {
  std::minstd_rand random(static_cast<unsigned>(a.lo(0)) + 1);
  for (index_t i = a.lo(0); i < a.hi(0); ++i) a(i) = static_cast<char>(random() >> 8);
});
const troupe::offer offered{add};

finished nodes(const std::string& join, std::vector<std::string> more = {}) {
  std::vector<std::string> words{TROUPE_BIN_DIR "/troupe", "nodes",  "--cluster", test::cluster_name,
                                 "--insecure-loopback",    "--join", join};
  words.insert(words.end(), more.begin(), more.end());
  return test::run(std::move(words));
}

/// Two nodes that know each other, and how long an answer takes.
struct two_nodes : test::several_nodes {
  two_nodes() : several_nodes(1, 2, 1h) {  // no tile is saved here because making it again would take too long
    EXPECT_TRUE(test::comes_true([&] { return a.links().at(0).round_trip != 0ns; }));
  }
};

/// 64 MiB there and back.
void move_something(troupe::runtime& a) {
  const index_t size = 64 << 20, tile = 8 << 20;
  const auto x = a.array<char>({size}, troupe::tiles(tile));
  a.for_each({.where = troupe::scope::here()}, troupe::grid(size), noise, troupe::write(x));
  const char before = x.read()(7);
  a.for_each({.where = troupe::scope::at("b")}, troupe::grid(size), add, troupe::update(x));
  ASSERT_EQ(x.read()(7), static_cast<char>(before + 1));
}

TEST(the_tool_nodes, shows_members_and_links_to_programs) {
  two_nodes both;
  troupe::runtime &a = both.a, &b = both.b();
  move_something(a);
  const finished done = nodes(a.addresses().front(), {"--json"});
  EXPECT_EQ(done.how, ended_with(0)) << done.err;
  const json all = test::json_reader::read(done.out);
  const auto& members = all["members"].list;
  ASSERT_EQ(members.size(), 2u) << done.out;  // and not itself
  EXPECT_EQ(members[0]["name"].string, "a");
  EXPECT_EQ(members[1]["name"].string, "b");
  EXPECT_EQ(members[1]["address"].string, b.addresses().front());
  EXPECT_EQ(members[1]["state"].string, "live");
  EXPECT_TRUE(members[1]["answered"].boolean);
  EXPECT_TRUE(members[1]["takes_work"].boolean);
  EXPECT_EQ(members[1]["slots"].number, 2);
  EXPECT_EQ(members[1]["busy"].number, 0);
  EXPECT_EQ(members[1]["queued"].number, 0);
  EXPECT_EQ(members[1]["tasks"].number, 8);
  EXPECT_EQ(members[0]["tasks"].number, 8) << "those that made the noise";
  EXPECT_GT(members[1]["memory"]["resident"].number, 0);
  EXPECT_GT(members[1]["memory"]["machine"].number, 0);
  EXPECT_EQ(members[1]["bulk"].string, "sockets");
  const auto& links = all["links"].list;
  ASSERT_EQ(links.size(), 1u) << done.out;  // and not its own
  EXPECT_EQ(links[0]["from"].string, "a");
  EXPECT_EQ(links[0]["from_id"].string, members[0]["id"].string);
  EXPECT_EQ(links[0]["to"].string, "b");
  for (const char* way : {"out", "in"}) {
    EXPECT_GT(links[0][way]["bytes_per_second"].number, 1e6);
    EXPECT_LT(links[0][way]["bytes_per_second"].number, 1e12);
    EXPECT_GE(links[0][way]["bytes"].number, 64 << 20);
    EXPECT_LT(links[0][way]["bytes"].number, 80 << 20);
    EXPECT_EQ(links[0][way]["fabric_bytes"].number, 0);
  }
  EXPECT_GT(links[0]["round_trip_ns"].number, 0);
  EXPECT_EQ(links[0]["resets"].number, 0);
}

// A word, counted from 0, of the first line of a table that begins with that name.
std::string word(const std::string& text, const std::string& header, const std::string& name, std::size_t number) {
  std::istringstream all(text.substr(std::min(text.size(), text.find(header))));
  for (std::string line; std::getline(all, line) && !line.empty();) {
    std::istringstream words(line);
    std::string w;
    words >> w;
    if (w != name) continue;
    for (; number != 0; --number) words >> w;
    return w;
  }
  return {};
}

TEST(the_tool_nodes, shows_them_to_people) {
  two_nodes both;
  troupe::runtime &a = both.a, &b = both.b();
  {
    const finished done = nodes(a.addresses().front());
    EXPECT_EQ(done.how, ended_with(0)) << done.err;
    EXPECT_EQ(word(done.out, "FROM ", "a", 2), "sockets") << done.out;
    EXPECT_EQ(word(done.out, "FROM ", "a", 5), "-") << "nothing was moved: " << done.out;
    EXPECT_EQ(word(done.out, "FROM ", "a", 6), "-");
  }
  move_something(a);
  const finished done = nodes(a.addresses().front());
  EXPECT_EQ(word(done.out, "NAME ", "b", 1), b.addresses().front()) << done.out;
  EXPECT_EQ(word(done.out, "NAME ", "b", 2), "live");
  EXPECT_EQ(word(done.out, "FROM ", "a", 4), "us") << "of the round trip: " << done.out;
  EXPECT_THAT(word(done.out, "FROM ", "a", 6), testing::EndsWith("iB/s")) << done.out;
}

TEST(the_tool_nodes, shows_a_member_that_does_not_listen_as_one_without_a_link) {
  test::several_nodes n(0);
  troupe::options o = node_options("dials", n.a.addresses());
  o.cluster.listen.clear();
  const troupe::runtime dials(o);
  ASSERT_TRUE(n.a.wait_for_nodes(1, 20s));
  const finished done = nodes(n.a.addresses().front(), {"--json"});
  EXPECT_EQ(done.how, ended_with(0)) << done.err;
  const json all = test::json_reader::read(done.out);
  const auto& members = all["members"].list;
  ASSERT_EQ(members.size(), 2u) << done.out;
  EXPECT_EQ(members[1]["name"].string, "dials");
  EXPECT_EQ(members[1]["state"].string, "no link") << "nothing is wrong with it";
}

TEST(the_tool_node, says_that_it_has_no_kernels_to_offer) {
  test::child c({TROUPE_BIN_DIR "/troupe", "node", "--cluster", test::cluster_name, "--insecure-loopback", "--listen",
                 "127.0.0.1:0"});
  c.line_after("ready ");
  EXPECT_THAT(c.line_after("offers "), HasSubstr("--plugin"));
  c.signal(SIGTERM);
  EXPECT_EQ(c.wait(), ended_with(0));
}

TEST(the_tool_nodes, says_why_there_is_no_fabric) {
  troupe::options o = node_options("a");
  o.cluster.trusted_fabric = true;
  troupe::runtime a(o);
  const finished done = nodes(a.addresses().front(), {"--json"});
  const json all = test::json_reader::read(done.out);
  ASSERT_EQ(all["members"].list.size(), 1u) << done.out;
  const std::string bulk = all["members"].list[0]["bulk"].string;
  if (bulk.find("sockets") == 0) {
    EXPECT_THAT(bulk, testing::MatchesRegex("sockets, without UCX: .+")) << "a reason";
    EXPECT_THAT(nodes(a.addresses().front()).out, HasSubstr("* a: " + bulk));
  } else {
    EXPECT_THAT(bulk, testing::StartsWith("ucx ")) << "it is there";
  }
}

TEST(the_tool_nodes, says_when_nobody_is_there) {
  const finished done = nodes("127.0.0.1:1", {"--timeout", "100"});
  EXPECT_EQ(done.how, ended_with(1));
  EXPECT_EQ(done.out, "no node answered\n");
  const finished none = nodes("127.0.0.1:1", {"--timeout", "100", "--json"});
  EXPECT_EQ(none.how, ended_with(1));
  EXPECT_TRUE(test::json_reader::read(none.out)["members"].list.empty());
}

}  // namespace
