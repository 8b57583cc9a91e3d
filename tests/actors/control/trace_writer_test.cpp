// What this file is for: the trace file as a reader of Chrome's format sees it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "actors/control/trace_writer.hpp"
#include "tests/api/json.hpp"

namespace {

using namespace troupe::detail;
using test::json;

/// A file of its own that goes with the test.
class trace_file : public testing::Test {
 protected:
  trace_file() {
    const int file = ::mkstemp(path_.data());
    if (file >= 0) ::close(file);
  }
  ~trace_file() override { ::unlink(path_.c_str()); }

  std::vector<json> events() const {
    std::ifstream in(path_);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    const json all = test::json_reader::read(text);
    return all["traceEvents"].list;
  }
  std::vector<json> events(const std::string& phase) const {
    std::vector<json> some;
    for (const json& e : events())
      if (e["ph"].string == phase) some.push_back(e);
    return some;
  }
  static trace_event event(std::uint64_t task, std::uint64_t begin, std::uint64_t end, const std::string& name) {
    trace_event e{task, begin, end, {}};
    name.copy(e.name.data(), e.name.size() - 1);
    return e;
  }

  std::string path_ = testing::TempDir() + "trace_writer_test_XXXXXX";
};

TEST_F(trace_file, without_events_is_valid_json) {
  trace_writer w(path_);
  EXPECT_EQ(w.close(), "");
  EXPECT_TRUE(events().empty());
}

TEST_F(trace_file, holds_one_slice_per_event_with_its_lane_task_and_length) {
  trace_writer w(path_);
  w.add({7, "worker 7", {event(1, 1'000'000, 3'000'000, "first"), event(0, 4'000'000, 4'500'000, "turn")}, {}});
  ASSERT_EQ(w.close(), "");
  const auto slices = events("X");
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(slices[0]["name"].string, "first");
  EXPECT_EQ(slices[0]["tid"].number, 7);
  EXPECT_EQ(slices[0]["ts"].number, 0);
  EXPECT_EQ(slices[0]["args"]["task"].number, 1);
  EXPECT_FALSE(slices[1].has("args")) << "not a task";
  EXPECT_NEAR(slices[0]["dur"].number / slices[1]["dur"].number, 4, 0.01);
}

TEST_F(trace_file, names_each_lane_once) {
  trace_writer w(path_);
  for (int i = 0; i < 3; ++i)
    for (int lane = 1; lane <= 2; ++lane) w.add({lane, "lane " + std::to_string(lane), {event(0, 1, 2, "x")}, {}});
  ASSERT_EQ(w.close(), "");
  std::map<double, std::string> names;
  for (const json& e : events("M")) {
    EXPECT_EQ(e["name"].string, "thread_name");
    EXPECT_TRUE(names.emplace(e["tid"].number, e["args"]["name"].string).second) << "a lane twice";
  }
  EXPECT_EQ(names, (std::map<double, std::string>{{1, "lane 1"}, {2, "lane 2"}}));
}

TEST_F(trace_file, draws_an_arrow_from_the_end_of_one_task_to_the_begin_of_the_other) {
  trace_writer w(path_);
  // The edge may come before the slices, and from another lane.
  w.add({1, "placement", {}, {{10, 20}}});
  w.add({2, "a", {event(10, 5'000'000, 6'000'000, "from")}, {}});
  w.add({3, "b", {event(20, 8'000'000, 9'000'000, "to")}, {}});
  ASSERT_EQ(w.close(), "");
  const auto starts = events("s"), ends = events("f"), slices = events("X");
  ASSERT_EQ(starts.size(), 1u);
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(starts[0]["id"].number, ends[0]["id"].number);
  EXPECT_EQ(starts[0]["tid"].number, 2);
  EXPECT_EQ(ends[0]["tid"].number, 3);
  EXPECT_EQ(ends[0]["bp"].string, "e");
  EXPECT_NEAR(starts[0]["ts"].number, slices[0]["ts"].number + slices[0]["dur"].number, 0.002);
  EXPECT_NEAR(ends[0]["ts"].number, slices[1]["ts"].number, 0.002);
}

TEST_F(trace_file, gives_every_arrow_an_id_of_its_own) {
  trace_writer w(path_);
  w.add({1, "a", {event(1, 10, 20, "a"), event(2, 30, 40, "b"), event(3, 50, 60, "c")}, {{1, 2}, {1, 3}, {2, 3}}});
  ASSERT_EQ(w.close(), "");
  std::map<double, int> ids;
  for (const json& e : events("s")) ++ids[e["id"].number];
  EXPECT_EQ(ids.size(), 3u);
}

TEST_F(trace_file, draws_no_arrow_to_a_task_that_has_no_slice) {
  trace_writer w(path_);
  w.add({1, "a", {event(1, 10, 20, "a")}, {{1, 2}, {3, 1}}});
  ASSERT_EQ(w.close(), "");
  EXPECT_TRUE(events("s").empty());
  EXPECT_TRUE(events("f").empty());
}

TEST_F(trace_file, keeps_events_before_the_first_one_seen_in_order) {
  trace_writer w(path_);
  w.add({1, "late", {event(1, 9'000'000, 9'500'000, "late")}, {}});
  w.add({2, "early", {event(2, 1'000'000, 1'500'000, "early")}, {}});
  ASSERT_EQ(w.close(), "");
  const auto slices = events("X");
  EXPECT_LT(slices[1]["ts"].number, slices[0]["ts"].number);
  EXPECT_GT(slices[1]["dur"].number, 0);
}

TEST_F(trace_file, stays_valid_with_any_byte_in_a_name) {
  trace_writer w(path_);
  w.add({1, "a \"lane\"\\\n\x01", {event(1, 1, 2, "\"quoted\"\t\\ \x1f")}, {}});
  ASSERT_EQ(w.close(), "");
  EXPECT_EQ(events("X").size(), 1u);
}

TEST_F(trace_file, is_finished_by_the_first_close) {
  trace_writer w(path_);
  EXPECT_EQ(w.close(), "");
  EXPECT_EQ(w.close(), "");
  EXPECT_NO_THROW((void)events());
}

TEST(trace_writer, says_so_when_the_file_cannot_be_opened) {
  trace_writer w("/no/such/folder/trace.json");
  EXPECT_FALSE(w.good());
  EXPECT_NE(w.close().find("/no/such/folder/trace.json"), std::string::npos);
}

TEST(trace_writer, says_so_when_the_disk_is_full) {
  trace_writer w("/dev/full");
  if (!w.good()) GTEST_SKIP() << "there is no /dev/full here";
  trace_block b{1, "a", {}, {}};
  for (std::uint64_t i = 0; i < 1000; ++i) b.events.push_back({i, i, i + 1, {}});
  w.add(b);
  EXPECT_NE(w.close(), "");
}

TEST(trace_lane, hands_blocks_over_when_they_are_full_and_the_rest_when_flushed) {
  struct counter : trace_sink {
    void take(trace_block&& b) override {
      ++blocks;
      events += b.events.size();
      edges += b.edges.size();
    }
    std::size_t blocks = 0, events = 0, edges = 0;
  } sink;
  trace_lane lane;
  EXPECT_FALSE(lane.on());
  lane.open(&sink, 1, "lane");
  for (std::uint64_t i = 0; i < 10'000; ++i)
    lane.add(i, i, i + 1, "a name that is much longer than the room for it is");
  lane.add_edge(1, 2);
  EXPECT_GE(sink.blocks, 1u) << "a block has a bound";
  lane.flush();
  EXPECT_EQ(sink.events, 10'000u);
  EXPECT_EQ(sink.edges, 1u);
  const std::size_t blocks = sink.blocks;
  lane.flush();
  EXPECT_EQ(sink.blocks, blocks) << "nothing new, no block";
}

}  // namespace
