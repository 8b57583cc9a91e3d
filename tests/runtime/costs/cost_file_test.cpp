// What this file is for: the text and the file of what runtimes have measured.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "runtime/costs/cost_file.hpp"
#include "runtime/costs/cost_store.hpp"
#include "tests/support/scratch_folder.hpp"

namespace {

using namespace troupe::detail;
namespace fs = std::filesystem;

constexpr cost_time now = 1'000'000'000;

link_cost link(std::string hardware, float rate, cost_time when = now) {
  return {std::move(hardware), when, {{1500.5f, rate}, {2500.25f, rate / 3}}};
}

cost_table some() {
  cost_table c;
  c.links = {link("a GPU, driver 7 | bus 1 | a processor", 12.5f), link("x", 1e-3f)};
  c.times = {{0xfedcba9876543210u, 1, 20, now, 0.1f}, {5, 0xffffffffffffffffu, 64, now - 9, 3.4e38f}};
  return c;
}

TEST(cost_file, reads_back_what_was_written) {
  const auto back = parse_costs(text_of(some()));
  ASSERT_TRUE(back);
  ASSERT_EQ(back->links.size(), 2u);
  EXPECT_EQ(back->links[0].hardware, some().links[0].hardware);
  EXPECT_EQ(back->links[0].when, now);
  EXPECT_EQ(back->links[0].speeds.in.latency_ns, 1500.5f);
  EXPECT_EQ(back->links[0].speeds.in.bytes_per_ns, 12.5f);
  EXPECT_EQ(back->links[0].speeds.out.latency_ns, 2500.25f);
  EXPECT_EQ(back->links[0].speeds.out.bytes_per_ns, 12.5f / 3);
  ASSERT_EQ(back->times.size(), 2u);
  EXPECT_EQ(back->times[1].kernel, 0xffffffffffffffffu);
  EXPECT_EQ(back->times[1].size, 64u);
  EXPECT_EQ(back->times[1].ns, 3.4e38f);
  EXPECT_EQ(text_of(*back), text_of(some()));
  EXPECT_TRUE(parse_costs(text_of({})));
}

TEST(cost_file, is_nothing_if_it_was_cut_anywhere) {
  const std::string text = text_of(some());
  for (std::size_t n = 0; n < text.size(); ++n) EXPECT_FALSE(parse_costs(text.substr(0, n))) << n;
  EXPECT_FALSE(parse_costs(text + "\n"));
}

TEST(cost_file, is_nothing_if_a_byte_has_changed) {
  const std::string text = text_of(some());
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string wrong = text;
    wrong[i] = static_cast<char>(wrong[i] ^ 1);
    EXPECT_FALSE(parse_costs(wrong)) << i;
  }
}

TEST(cost_file, of_another_version_is_nothing) {
  std::string text = text_of(some());
  text.replace(text.find(" 1 "), 3, " 2 ");
  EXPECT_FALSE(parse_costs(text));
  EXPECT_FALSE(parse_costs(""));
  EXPECT_FALSE(parse_costs("troupe costs 1 99999999999999999999999 0\n"));
}

TEST(cost_file, takes_no_numbers_that_nobody_measures) {
  for (const float wrong : {0.0f, -1.0f, std::numeric_limits<float>::infinity(), std::nanf("")}) {
    cost_table c = some();
    c.links[0].speeds.out.bytes_per_ns = wrong;
    EXPECT_FALSE(parse_costs(text_of(c))) << wrong;
    c = some();
    c.times[0].ns = wrong;
    EXPECT_FALSE(parse_costs(text_of(c))) << wrong;
  }
}

TEST(cost_table, keeps_other_keys_and_takes_the_newer_of_the_same) {
  cost_table c = some(), newer;
  newer.links = {link("x", 9)};
  newer.times = {{5, 0xffffffffffffffffu, 64, now, 77}, {5, 0xffffffffffffffffu, 63, now, 88}};
  c.merge(newer, now);
  EXPECT_EQ(c.links.size(), 2u);
  EXPECT_EQ(c.find_link("x")->speeds.in.bytes_per_ns, 9);
  EXPECT_EQ(c.find_link("y"), nullptr);
  EXPECT_EQ(c.times.size(), 3u);
}

TEST(cost_table, forgets_what_is_old_or_from_the_future) {
  cost_table c, newer;
  newer.links = {link("old", 1, now - cost_table::seconds_max - 1), link("future", 1, now + 1), link("last", 1)};
  newer.times = {{1, 1, 1, now - cost_table::seconds_max - 1, 1}, {1, 2, 1, now - cost_table::seconds_max, 1}};
  c.merge(newer, now);
  ASSERT_EQ(c.links.size(), 1u);
  EXPECT_EQ(c.links[0].hardware, "last");
  ASSERT_EQ(c.times.size(), 1u);
  EXPECT_EQ(c.times[0].kernel, 2u);
}

TEST(cost_table, is_bounded_and_drops_the_oldest) {
  cost_table c, newer;
  for (std::size_t i = 0; i < cost_table::times_max + 500; ++i)
    newer.times.push_back({1, i, 1, now - static_cast<cost_time>(i), 1});
  c.merge(newer, now);
  ASSERT_EQ(c.times.size(), cost_table::times_max);
  for (const kernel_cost& t : c.times) EXPECT_LT(t.kernel, cost_table::times_max);
  EXPECT_LT(text_of(c).size(), std::size_t{1} << 19);
}

class cost_files : public testing::Test {
 protected:
  static cost_table one(std::uint64_t kernel, float ns = 1) {
    cost_table c;
    c.times = {{1, kernel, 1, now, ns}};
    return c;
  }
  void put(const std::string& text) const { std::ofstream(folder / "costs", std::ios::binary) << text; }
  const test::scratch_folder scratch;
  const fs::path folder = scratch.path();
};

TEST_F(cost_files, are_found_by_the_next_one) {
  const cost_store first(folder / "deeper"), second(folder / "deeper");
  EXPECT_TRUE(first.read(now).times.empty());
  EXPECT_TRUE(first.add(one(1), now));
  EXPECT_TRUE(second.add(one(2), now));
  EXPECT_EQ(first.read(now).times.size(), 2u);
  EXPECT_TRUE(second.read(now + 2 * cost_table::seconds_max).times.empty());
}

TEST_F(cost_files, that_are_damaged_are_ignored_and_replaced) {
  const cost_store store(folder);
  const std::string good = text_of(one(1));
  for (const std::string& text : {std::string("nonsense"), std::string(), good.substr(0, good.size() - 1),
                                  std::string(5 << 20, 'x'), std::string("troupe costs 9 0 0\n")}) {
    put(text);
    EXPECT_TRUE(store.read(now).times.empty());
    EXPECT_TRUE(store.add(one(7), now));
    ASSERT_EQ(store.read(now).times.size(), 1u);
    EXPECT_EQ(store.read(now).times[0].kernel, 7u);
  }
}

TEST_F(cost_files, that_cannot_be_written_are_no_error) {
  EXPECT_FALSE(cost_store("").add(one(1), now));
  EXPECT_FALSE(cost_store("/proc/nowhere").add(one(1), now));
  fs::create_directories(folder / "costs");  // a folder of that name
  EXPECT_FALSE(cost_store(folder).add(one(1), now));
  EXPECT_TRUE(cost_store(folder).read(now).times.empty());
  EXPECT_FALSE(cost_store(folder / "costs.lock" / "x").add(one(1), now));  // beneath a file
  for (const auto& file : fs::directory_iterator(folder))
    EXPECT_FALSE(file.path().filename().string().starts_with("new-")) << file.path();
}

TEST_F(cost_files, lose_nothing_that_several_add_at_once_and_are_whole_at_any_time) {
  constexpr std::uint64_t writers = 4, each = 25;
  std::atomic<bool> done{false};
  std::size_t most = 0;
  std::thread reader([&] {
    const cost_store store(folder);
    while (!done) {
      const std::size_t n = store.read(now).times.size();
      EXPECT_GE(n, most);  // a torn file would read as empty
      most = n;
    }
  });
  std::atomic<std::uint64_t> added{0};
  std::vector<std::thread> all;
  for (std::uint64_t w = 0; w < writers; ++w)
    all.emplace_back([&, w] {
      const cost_store store(folder);
      for (std::uint64_t i = 0; i < each; ++i) added += store.add(one(w * each + i), now) ? 1 : 0;
    });
  for (auto& t : all) t.join();
  done = true;
  reader.join();
  EXPECT_EQ(cost_store(folder).read(now).times.size(), added);
  EXPECT_GT(added, each);  // a process that waits too long for the lock gives up
}

}  // namespace
