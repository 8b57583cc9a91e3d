// What this file is for: `troupe streams`: what it shows of the streams of a program that runs.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <troupe/stream.hpp>
#include <troupe/troupe.hpp>

#include "tests/support/processes.hpp"
#include "tests/support/scratch_folder.hpp"

namespace {

namespace st = troupe::stream;
using namespace std::chrono_literals;
using test::ended_with;
using testing::HasSubstr;

test::finished streams(const std::string& path, std::vector<std::string> more = {}) {
  std::vector<std::string> words{TROUPE_BIN_DIR "/troupe", "streams", path};
  words.insert(words.end(), more.begin(), more.end());
  return test::run(std::move(words));
}

st::pipeline doubling(const char* input) {
  return st::from<int>(input) | st::map("double", [](int i) { return 2 * i; }) | st::sink("end", [](int) {});
}

TEST(streams, are_shown_with_their_stages_while_they_run_and_after) {
  const test::scratch_folder folder;
  const std::string path = folder.path() / "streams";
  troupe::runtime rt(troupe::options{.threads = 2});
  const st::report_socket socket(rt, path);
  EXPECT_EQ(streams(path).out, "no streams\n");

  auto p = doubling("numbers"), q = doubling("others");
  auto a = p.start(rt, {.name = "first"}), b = q.start(rt, {.name = "second"});
  for (int i = 0; i < 100; ++i) ASSERT_EQ(a.input<int>("numbers").push(i), st::pushed::ok);
  const auto end = std::chrono::steady_clock::now() + 30s;
  while (a.report().items.delivered != 100 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  const auto shown = streams(path);
  EXPECT_EQ(shown.how, ended_with(0)) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("stream 'first' runs"));
  EXPECT_THAT(shown.out, HasSubstr("pushed 100, delivered 100"));
  EXPECT_THAT(shown.out, HasSubstr("double"));
  EXPECT_LT(shown.out.find("stream 'first'"), shown.out.find("stream 'second' runs"));
  ASSERT_EQ(st::reports(rt).size(), 2u);
  EXPECT_EQ(st::reports(rt)[0].items.delivered, 100u);

  a.drain(30s);
  EXPECT_THAT(streams(path).out, HasSubstr("stream 'first' ended"));
  { const auto gone = std::move(a); }
  EXPECT_THAT(streams(path).out, testing::Not(HasSubstr("first")));
}

TEST(streams, are_shown_again_until_the_program_has_ended) {
  const test::scratch_folder folder;
  const std::string path = folder.path() / "streams";
  troupe::runtime rt(troupe::options{.threads = 1});
  auto p = doubling("numbers");
  auto r = p.start(rt);
  std::optional<st::report_socket> socket(std::in_place, rt, path);
  test::child tool({TROUPE_BIN_DIR "/troupe", "streams", path, "--every", "1"});
  for (int times = 0; times < 3; ++times) tool.line_after("stream 'stream' runs");
  socket.reset();
  EXPECT_EQ(tool.wait(), ended_with(0)) << tool.err();
}

TEST(streams, of_a_runtime_that_has_ended_are_none) {
  const test::scratch_folder folder;
  const std::string path = folder.path() / "streams";
  std::optional<troupe::runtime> rt(std::in_place, troupe::options{.threads = 1});
  const st::report_socket socket(*rt, path);
  rt.reset();
  EXPECT_EQ(streams(path).out, "the runtime has ended\n");
}

TEST(streams, nobody_else_may_look_and_readers_that_do_not_read_stop_nothing) {
  const test::scratch_folder folder;
  const std::string path = folder.path() / "streams";
  troupe::runtime rt(troupe::options{.threads = 1});
  auto p = doubling("numbers");
  auto r = p.start(rt);
  std::optional<st::report_socket> socket(std::in_place, rt, path);
  struct stat s {};
  ASSERT_EQ(::stat(path.c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 0777, 0600u);
  EXPECT_THROW(st::report_socket(rt, path), troupe::error);  // in use

  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  path.copy(at.sun_path, sizeof at.sun_path - 1);
  std::vector<int> lazy;
  for (int i = 0; i < 5; ++i) {
    lazy.push_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(lazy.back(), reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  }
  EXPECT_THAT(streams(path).out, HasSubstr("stream 'stream' runs"));
  for (const int d : lazy) ::close(d);
  socket.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(streams, paths_at_which_nobody_answers_are_told) {
  const test::scratch_folder folder;
  const std::string path = folder.path() / "streams";
  EXPECT_EQ(streams(path).how, ended_with(1));
  EXPECT_THAT(streams(path).err, HasSubstr("No such file or directory"));
  EXPECT_EQ(streams(path, {"--every", "-1"}).how, ended_with(2));
  troupe::runtime rt(troupe::options{.threads = 1});
  EXPECT_THROW(st::report_socket(rt, "/no/such/folder/x"), troupe::error);
  EXPECT_THROW(st::report_socket(rt, "/" + std::string(200, 'x')), troupe::error);
  EXPECT_THROW(st::report_socket(rt, ""), troupe::error);
  // What a process that was killed has left is taken over.
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  path.copy(at.sun_path, sizeof at.sun_path - 1);
  const int left = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::bind(left, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  ::close(left);
  const st::report_socket socket(rt, path);
  EXPECT_EQ(streams(path).out, "no streams\n");
}

TEST(streams, a_file_that_is_no_socket_is_left_alone) {
  const test::scratch_folder folder;
  const std::string path = folder.path() / "results";
  std::ofstream(path) << "precious";
  troupe::runtime rt(troupe::options{.threads = 1});
  EXPECT_THROW(st::report_socket(rt, path), troupe::error);
  std::string text;
  std::ifstream(path) >> text;
  EXPECT_EQ(text, "precious");
}

}  // namespace
