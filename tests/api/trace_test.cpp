// What this file is for: the trace file: valid JSON in the format of Chrome and Perfetto, with every task in it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <ranges>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include <troupe/stream.hpp>
#include <troupe/troupe.hpp>

#include "gates.hpp"
#include "json.hpp"

namespace {

using namespace troupe;
using test::json;
using test::json_reader;

// A file of the test's own, gone afterwards.
class scratch_file {
 public:
  explicit scratch_file(const std::string& name) {
    auto pattern = (std::filesystem::temp_directory_path() / "troupe-trace-XXXXXX").string();
    const char* made = mkdtemp(pattern.data());
    if (!made) throw std::runtime_error("no scratch folder");
    folder_ = made;
    path_ = folder_ / name;
  }
  ~scratch_file() { std::filesystem::remove_all(folder_); }
  std::string path() const { return path_.string(); }
  std::string contents() const {
    std::ostringstream text;
    text << std::ifstream(path_, std::ios::binary).rdbuf();
    return text.str();
  }

 private:
  std::filesystem::path folder_, path_;
};

// The list of events; the format allows it alone or as a member.
const std::vector<json>& events_of(const json& file) {
  return file.what == json::kind::list ? file.list : file["traceEvents"].list;
}

using lane = std::pair<double, double>;  // process and thread
lane lane_of(const json& event) { return {event["pid"].number, event["tid"].number}; }

std::map<lane, std::string> lane_names(const std::vector<json>& events) {
  std::map<lane, std::string> names;
  for (const json& e : events)
    if (e["ph"].string == "M" && e["name"].string == "thread_name") names[lane_of(e)] = e["args"]["name"].string;
  return names;
}

TEST(trace, is_valid_json_with_one_lane_per_worker_and_one_slice_per_task) {
  const scratch_file file("run.json");
  {
    runtime rt(options{.threads = 3, .core_groups = 1, .trace = file.path()});
    test::meeting all_three(3);  // so that every worker has run something
    std::vector<future<bool>> met;
    for (int i = 0; i < 3; ++i)
      met.push_back(rt.spawn(task_options{.name = "met"}, [&] { return all_three.arrive_and_wait(); }));
    for (auto& m : met) ASSERT_TRUE(m.get());
    for (int i = 0; i < 20; ++i) rt.spawn(task_options{.name = "odd \"name\"\\\n\t\x01"}, [] {});
  }
  json trace;
  ASSERT_NO_THROW(trace = json_reader::read(file.contents())) << file.contents().substr(0, 500);
  const auto& events = events_of(trace);
  ASSERT_FALSE(events.empty());
  const auto names = lane_names(events);
  std::map<std::string, int> slices;
  std::set<lane> met_on;
  for (const json& e : events) {
    ASSERT_EQ(e["ph"].what, json::kind::string);
    if (e["ph"].string != "X") continue;
    EXPECT_GE(e["dur"].number, 0);
    EXPECT_TRUE(e.has("ts"));
    EXPECT_TRUE(names.count(lane_of(e))) << "a slice of '" << e["name"].string << "' lies in a lane without a name";
    ++slices[e["name"].string];
    if (e["name"].string == "met") met_on.insert(lane_of(e));
  }
  EXPECT_EQ(slices["met"], 3);
  EXPECT_EQ(met_on.size(), 3u) << "three bodies that ran at the same time share lanes";
  for (const lane& l : met_on) EXPECT_NE(names.at(l).find("cpu:0"), std::string::npos) << names.at(l);
  int odd = 0;
  for (const auto& [name, count] : slices)
    if (name.rfind("odd ", 0) == 0) odd += count;
  EXPECT_EQ(odd, 20);
}

TEST(trace, has_a_lane_for_each_part_of_a_stream_with_the_spans_in_which_it_ran) {
  const scratch_file file("stream.json");
  namespace st = troupe::stream;
  int sum = 0;
  const auto stream = [&](int count) {
    return st::from("numbers", std::views::iota(0, count)) | st::map("twice \xff\xc3", [](int i) { return 2 * i; }) |
           st::async() | st::map("lanes", [](int i) { return i; }, {.parallel = 2}) |
           st::sink("sum", [&](int i) { sum += i; });
  };
  {
    runtime rt(options{.threads = 2, .trace = file.path()});
    auto first = stream(1000).start(rt, {.name = "first"});
    ASSERT_TRUE(first.wait_for(test::patience));
    auto second = stream(1'000'000'000).start(rt, {.name = "second"});
    EXPECT_FALSE(second.wait_for(std::chrono::milliseconds(5)));  // it ends with the runtime
  }
  json trace;
  ASSERT_NO_THROW(trace = json_reader::read(file.contents())) << file.contents().substr(0, 500);
  const auto names = lane_names(events_of(trace));
  std::map<std::string, int> spans;
  for (const json& e : events_of(trace)) {
    if (e["ph"].string != "X" || !names.count(lane_of(e))) continue;
    const std::string& on = names.at(lane_of(e));
    if (on.rfind("stream ", 0) != 0) continue;
    EXPECT_NE(on.find(e["name"].string), std::string::npos) << on;
    ++spans[on];
  }
  for (const std::string of : {"first", "second"})
    for (const std::string part : {"numbers > twice ??", "lanes #0", "sum"})
      EXPECT_GT(spans["stream " + of + ": " + part], 0) << of << ": " << part;
}

TEST(trace, draws_arrows_for_dependencies) {
  const scratch_file file("arrows.json");
  {
    runtime rt(options{.threads = 2, .core_groups = 2, .trace = file.path()});
    auto a = rt.filled<int>({1}, tiles(1), 0, "a");
    for (int i = 0; i < 4; ++i)
      rt.spawn(
          task_options{.where = scope::executor(i % 2 ? "cpu:1" : "cpu:0"), .name = "link"},
          [](view<int, 1> v) { ++v(0); }, update(a));
    EXPECT_EQ(a.read()(0), 4);
  }
  const json trace = json_reader::read(file.contents());
  std::multiset<double> starts, ends;
  for (const json& e : events_of(trace)) {
    if (e["ph"].string == "s") starts.insert(e["id"].number);
    if (e["ph"].string == "f") ends.insert(e["id"].number);
  }
  EXPECT_GE(starts.size(), 3u);
  EXPECT_EQ(starts.size(), ends.size());
}

TEST(trace, of_a_task_that_failed_is_still_valid) {
  const scratch_file file("failed.json");
  {
    runtime rt(options{.threads = 1, .trace = file.path()});
    rt.spawn(task_options{.name = "failing"}, [] { throw std::runtime_error("no"); });
  }
  json trace;
  ASSERT_NO_THROW(trace = json_reader::read(file.contents()));
  int found = 0;
  for (const json& e : events_of(trace)) found += e["ph"].string == "X" && e["name"].string == "failing";
  EXPECT_EQ(found, 1);
}

TEST(trace, without_a_place_to_write_is_no_crash) {
  const scratch_file file("gone");
  bool refused = false;
  try {
    runtime rt(options{.threads = 1, .trace = file.path() + "/missing/run.json"});
    EXPECT_EQ(rt.spawn([] { return 1; }).get(), 1);
  } catch (const error& e) {
    refused = true;
    EXPECT_EQ(e.code(), errc::io_failed);
    EXPECT_NE(std::string(e.what()).find("run.json"), std::string::npos) << e.what();
  }
  EXPECT_FALSE(std::filesystem::exists(file.path()));
  static_cast<void>(refused);
}

}  // namespace
