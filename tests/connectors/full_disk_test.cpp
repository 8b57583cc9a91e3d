// What this file is for: streams that write lines to a disk that becomes full, and to one that has room again.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <ranges>
#include <string>
#include <vector>

#include <troupe/troupe.hpp>

#include "connectors/lines.hpp"
#include "tests/support/apart.hpp"
#include "tests/support/scratch_folder.hpp"

namespace {

namespace st = troupe::stream;
namespace connect = troupe::connectors;
using namespace std::chrono_literals;

constexpr std::size_t disk_bytes = 256u << 10;

// The folder that is a disk with room for `disk_bytes`, in a process that has one. Elsewhere the test is run in such a
// process, and the name is empty: there is nothing left to do.
std::string own_disk() {
  constexpr const char* variable = "TROUPE_TEST_DISK";
  if (const char* folder = std::getenv(variable)) return folder;
  const test::scratch_folder folder;
  test::child_options how;
  how.small_disk = (folder.path() / "disk").string();
  how.small_disk_bytes = disk_bytes;
  how.environment = {variable + ("=" + how.small_disk)};
  std::filesystem::create_directory(how.small_disk);
  test::run_apart(how, "a disk of its own needs CAP_SYS_ADMIN or user namespaces");
  return {};
}

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void put(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary);
  out << bytes;
  ASSERT_TRUE(out.flush());
}

// Lines of 0 to 499 bytes, each of which says its number.
std::vector<std::string> lines_to_write(int count) {
  std::mt19937 random(7);
  std::vector<std::string> all;
  for (int i = 0; i < count; ++i) {
    all.push_back(std::to_string(i) + " ");
    all.back().resize(all.back().size() + random() % 490, static_cast<char>('a' + i % 26));
  }
  return all;
}

std::string text_of(std::ranges::input_range auto&& lines) {
  std::string all;
  for (const std::string& l : lines) all += l + "\n";
  return all;
}

troupe::errc code_of(const std::exception_ptr& why) {
  try {
    std::rethrow_exception(why);
  } catch (const troupe::error& e) {
    return e.code();
  }
}

void expect_balanced(const st::report& r) {
  EXPECT_TRUE(r.is_exact);
  EXPECT_EQ(r.items.pushed + r.items.created,
            r.items.delivered + r.items.dropped + r.items.dead + r.items.absorbed + r.items.in_flight)
      << r.text();
}

TEST(full_disk, a_line_without_room_leaves_nothing_of_itself_behind) {
  const std::string disk = own_disk();
  if (disk.empty()) return;
  connect::file_writer write(disk + "/out");
  write("first");
  for (int times = 0; times < 2; ++times) {
    try {
      write(std::string(disk_bytes, 'x'));
      ADD_FAILURE() << "there is no room for that";
    } catch (const troupe::error& e) {
      EXPECT_EQ(e.code(), troupe::errc::disk_full);
    }
    EXPECT_TRUE(bytes_of(disk + "/out") == "first\n");
  }
  write("second");
  EXPECT_EQ(bytes_of(disk + "/out"), "first\nsecond\n");
}

TEST(full_disk, fails_the_stream_and_holds_the_lines_that_were_delivered) {
  const std::string disk = own_disk();
  if (disk.empty()) return;
  const test::scratch_folder folder;
  const std::string from = folder.path() / "in", to = disk + "/out";
  const std::vector<std::string> lines = lines_to_write(2'000);
  put(from, text_of(lines));
  troupe::runtime rt(troupe::options{.threads = 2});
  auto p = st::from("lines", connect::file_lines(from)) |
           st::map("text", [](connect::line l) { return std::move(l.text); }, {.parallel = 2}) |
           st::sink("write", connect::file_writer(to));
  auto r = p.start(rt, {.name = "copy"});
  std::uint64_t failed_on = 0;
  try {
    r.wait();
    FAIL() << "the disk has room for half of that";
  } catch (const st::stage_failed& e) {
    EXPECT_EQ(e.stage(), "write");
    EXPECT_EQ(e.attempts(), 1);
    EXPECT_EQ(code_of(e.cause()), troupe::errc::disk_full);
    EXPECT_NE(std::string(e.what()).find(to), std::string::npos) << e.what();
    failed_on = e.item();
  }
  const st::report told = r.report();
  EXPECT_EQ(told.state, st::state::failed);
  expect_balanced(told);
  EXPECT_EQ(told.items.delivered, failed_on);
  EXPECT_EQ(told.items.dead + told.items.dropped, 0u);
  EXPECT_GT(told.items.in_flight, 0u);  // at least the line that was not written
  const std::string written = bytes_of(to);
  EXPECT_TRUE(written == text_of(lines | std::views::take(failed_on)));
  EXPECT_LE(written.size(), disk_bytes);
  EXPECT_GT(written.size() + lines[failed_on].size() + 1, disk_bytes);  // what was left was too little for the next
}

// A disk of which half is taken, until somebody removes `filler`. Its last page ends in the middle of a line.
struct filled_disk {
  std::string path, filler;
  explicit filled_disk(const std::string& disk) : path(disk + "/out"), filler(disk + "/filler") {
    put(filler, std::string(disk_bytes / 2, 'f'));
  }
};

TEST(full_disk, with_dead_letters_the_stream_goes_on_and_later_lines_are_whole) {
  const std::string disk = own_disk();
  if (disk.empty()) return;
  const filled_disk on(disk);
  const std::vector<std::string> lines = lines_to_write(800);
  ASSERT_GT(text_of(lines).size(), disk_bytes / 2 + 30'000);
  ASSERT_LT(text_of(lines).size(), disk_bytes);
  std::vector<std::string> written_off, kept = lines;
  troupe::runtime rt(troupe::options{.threads = 2});
  auto p = st::from("lines", lines) | st::async({.items = 8}) |
           st::sink("write", connect::file_writer(on.path), {.fail = st::retry(2, 100us).then(st::dead_letter)});
  auto r = p.start(rt, {.on_dead_letter = [&](const st::letter& l) {
                     EXPECT_EQ(l.stage, "write");
                     EXPECT_EQ(l.attempts, 3);
                     EXPECT_EQ(code_of(l.error), troupe::errc::disk_full);
                     ASSERT_TRUE(l.as<std::string>());
                     EXPECT_EQ(*l.as<std::string>(), lines.at(l.number));
                     written_off.push_back(*l.as<std::string>());
                     if (written_off.size() == 10) std::filesystem::remove(on.filler);
                   }});
  r.wait();
  const st::report told = r.report();
  EXPECT_EQ(told.state, st::state::ended);
  expect_balanced(told);
  EXPECT_EQ(written_off.size(), 10u);  // those after that had room
  EXPECT_EQ(told.items.pushed, lines.size());
  EXPECT_EQ(told.items.dead, written_off.size());
  EXPECT_EQ(told.items.delivered + told.items.dead, told.items.pushed);
  EXPECT_EQ(told.stages.back().retries, 20u);
  std::erase_if(kept, [&](const std::string& l) { return std::ranges::count(written_off, l) != 0; });
  EXPECT_EQ(kept.size(), lines.size() - 10);
  EXPECT_TRUE(bytes_of(on.path) == text_of(kept));
}

TEST(full_disk, with_retries_no_line_is_lost_where_room_is_made_in_time) {
  const std::string disk = own_disk();
  if (disk.empty()) return;
  const filled_disk on(disk);
  const std::vector<std::string> lines = lines_to_write(800);
  int failures = 0;
  const auto write = [&, to = connect::file_writer(on.path)](const std::string& l) mutable {
    try {
      to(l);
    } catch (const troupe::error& e) {
      EXPECT_EQ(e.code(), troupe::errc::disk_full);
      if (++failures == 3) std::filesystem::remove(on.filler);
      throw;
    }
  };
  troupe::runtime rt(troupe::options{.threads = 2});
  auto p = st::from("lines", lines) | st::async({.items = 8}) | st::sink("write", write, {.fail = st::retry(4, 100us)});
  auto r = p.start(rt);
  r.wait();
  const st::report told = r.report();
  expect_balanced(told);
  EXPECT_EQ(failures, 3);
  EXPECT_EQ(told.stages.back().retries, 3u);
  EXPECT_EQ(told.items.delivered, lines.size());
  EXPECT_TRUE(bytes_of(on.path) == text_of(lines));
}

}  // namespace
