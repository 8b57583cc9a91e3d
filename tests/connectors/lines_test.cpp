// What this file is for: lines from files, from files that grow and are rotated, from pipes; lines written.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <troupe/troupe.hpp>

#include "connectors/lines.hpp"
#include "tests/support/scratch_folder.hpp"

namespace {

namespace st = troupe::stream;
namespace connect = troupe::connectors;
using connect::line;

constexpr std::chrono::seconds patience{30};

std::vector<line> all_of(troupe::runtime& rt, st::source<line> s) {
  std::vector<line> got;
  auto p = st::from("lines", std::move(s)) | st::async({.items = 5}) |
           st::sink("keep", [&](line l) { got.push_back(std::move(l)); });
  p.start(rt).wait();
  return got;
}

std::string path_with(const test::scratch_folder& f, const std::string& text) {
  const std::string path = f.path() / "text";
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

TEST(lines, a_file_comes_line_by_line_with_offsets_and_can_be_read_again_from_each) {
  troupe::runtime rt(troupe::options{.threads = 2});
  const test::scratch_folder folder;
  std::string text;
  for (int i = 0; i < 20'000; ++i)
    text += std::string(static_cast<std::size_t>(i * 7 % 90), static_cast<char>('a' + i % 26)) + "\n";
  text += "the last one has no end";
  const std::string path = path_with(folder, text);
  const std::vector<line> all = all_of(rt, connect::file_lines(path));
  ASSERT_EQ(all.size(), 20'001u);
  std::string again;
  for (const line& l : all) {
    EXPECT_EQ(l.offset, again.size());
    again += l.text;
    if (l.is_whole) again += '\n';
  }
  EXPECT_EQ(again, text);
  EXPECT_FALSE(all.back().is_whole);
  EXPECT_TRUE(all[all.size() - 2].is_whole);

  const std::vector<line> rest = all_of(rt, connect::file_lines(path, {.from = all[12'345].offset}));
  ASSERT_EQ(rest.size(), 20'001u - 12'345u);
  EXPECT_EQ(rest.front().text, all[12'345].text);
  EXPECT_EQ(rest.front().offset, all[12'345].offset);
}

TEST(lines, a_line_that_is_too_long_comes_in_pieces) {
  troupe::runtime rt(troupe::options{.threads = 1});
  const test::scratch_folder folder;
  const std::string path = path_with(folder, "ab\nabcdefghij\nabcde\nabcdef\n\nx\n");
  const std::vector<line> all = all_of(rt, connect::file_lines(path, {.line_max = 5}));
  std::vector<std::string> texts;
  std::vector<bool> whole;
  for (const line& l : all) {
    texts.push_back(l.text);
    whole.push_back(l.is_whole);
  }
  EXPECT_EQ(texts, (std::vector<std::string>{"ab", "abcde", "fghij", "abcde", "abcde", "f", "", "x"}));
  EXPECT_EQ(whole, (std::vector<bool>{true, false, false, true, false, false, true, true}));
  EXPECT_EQ(all[2].offset, 8u);
}

TEST(lines, an_endless_line_takes_bounded_memory) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::uint64_t bytes = 0;
  auto p = st::from("zeros", connect::file_lines("/dev/zero")) | st::sink("count", [&](const line& l) {
             EXPECT_LE(l.text.size(), std::size_t{1} << 20);
             EXPECT_FALSE(l.is_whole);
             bytes += l.text.size();
             if (bytes > (std::uint64_t{64} << 20)) throw std::runtime_error("enough");
           });
  auto r = p.start(rt);
  EXPECT_THROW(r.wait(), st::stage_failed);
  EXPECT_EQ(bytes % (std::uint64_t{1} << 20), 0u);
}

TEST(lines, what_cannot_be_opened_is_refused_at_once) {
  for (const auto& f :
       {+[] { static_cast<void>(connect::file_lines("/no/such/file")); },
        +[] { static_cast<void>(connect::file_lines("/")); }, +[] { static_cast<void>(connect::descriptor_lines(-1)); },
        +[] { static_cast<void>(connect::file_writer("/no/such/file")); }}) {
    try {
      f();
      ADD_FAILURE();
    } catch (const troupe::error& e) {
      EXPECT_EQ(e.code(), troupe::errc::io_failed);
    }
  }
  EXPECT_THROW(static_cast<void>(connect::file_lines("/dev/null", {.line_max = 0})), troupe::error);
  EXPECT_THROW(static_cast<void>(connect::tail_lines("/dev/null", {.interval = std::chrono::milliseconds(0)})),
               troupe::error);
}

TEST(lines, a_pipe_is_read_only_while_there_is_room_and_to_its_end) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  std::thread writer([&] {
    for (int i = 0; i < 50'000; ++i) {
      const std::string s = "line " + std::to_string(i) + "\n";
      ASSERT_EQ(::write(ends[1], s.data(), s.size()), static_cast<ssize_t>(s.size()));
    }
    ASSERT_EQ(::write(ends[1], "half", 4), 4);
    ::close(ends[1]);
  });
  const std::vector<line> all = all_of(rt, connect::descriptor_lines(ends[0]));
  writer.join();
  ::close(ends[0]);
  ASSERT_EQ(all.size(), 50'001u);
  for (int i = 0; i < 50'000; ++i) ASSERT_EQ(all[static_cast<std::size_t>(i)].text, "line " + std::to_string(i));
  EXPECT_EQ(all.back().text, "half");
  EXPECT_FALSE(all.back().is_whole);
}

TEST(lines, a_file_that_grows_is_followed_through_rotation_and_truncation) {
  troupe::runtime rt(troupe::options{.threads = 2});
  const test::scratch_folder folder;
  const std::filesystem::path log = folder.path() / "log";
  std::mutex lock;
  std::vector<std::string> got;
  auto p = st::from("log", connect::tail_lines(log, {.interval = std::chrono::milliseconds(1)})) |
           st::sink("keep", [&](const line& l) {
             const std::lock_guard hold(lock);
             got.push_back(l.text);
           });
  auto r = p.start(rt);
  const auto wait_for = [&](const std::string& last) {
    const auto end = std::chrono::steady_clock::now() + patience;
    for (;;) {
      {
        const std::lock_guard hold(lock);
        if (!got.empty() && got.back() == last) return true;
      }
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::yield();
    }
  };
  std::ofstream out(log, std::ios::app);
  out << "one\ntwo\nthr" << std::flush;
  ASSERT_TRUE(wait_for("two"));
  out << "ee\n" << std::flush;
  ASSERT_TRUE(wait_for("three"));
  std::filesystem::rename(log, folder.path() / "log.1");
  std::ofstream fresh(log);
  fresh << "five\n" << std::flush;
  ASSERT_TRUE(wait_for("five"));
  out.close();
  fresh << "six\n" << std::flush;
  ASSERT_TRUE(wait_for("six"));
  fresh.close();
  std::ofstream(log, std::ios::trunc) << "7\n";
  ASSERT_TRUE(wait_for("7"));
  EXPECT_EQ(r.drain(patience).state, st::state::ended);
  EXPECT_EQ(got, (std::vector<std::string>{"one", "two", "three", "five", "six", "7"}));
}

TEST(lines, what_is_written_can_be_read_and_a_full_disk_is_a_failure_with_its_code) {
  troupe::runtime rt(troupe::options{.threads = 2});
  const test::scratch_folder folder;
  const std::string path = folder.path() / "out";
  auto p = st::from("numbers", std::views::iota(0, 1000)) | st::map("text", [](int i) { return std::to_string(i); }) |
           st::sink("write", connect::file_writer(path));
  p.start(rt).wait();
  const std::vector<line> all = all_of(rt, connect::file_lines(path));
  ASSERT_EQ(all.size(), 1000u);
  EXPECT_EQ(all[999].text, "999");

  auto q = st::from("numbers", std::views::iota(0, 1000)) | st::map("text", [](int i) { return std::to_string(i); }) |
           st::sink("write", connect::file_writer("/dev/full"));
  auto r = q.start(rt);
  try {
    r.wait();
    FAIL();
  } catch (const st::stage_failed& e) {
    EXPECT_EQ(e.stage(), "write");
    EXPECT_EQ(e.item(), 0u);
    try {
      std::rethrow_exception(e.cause());
    } catch (const troupe::error& cause) {
      EXPECT_EQ(cause.code(), troupe::errc::disk_full);
    }
  }
}

}  // namespace
