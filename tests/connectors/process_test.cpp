// What this file is for: programs whose output is a stream: how they end, and that they end with the stream.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include <troupe/troupe.hpp>

#include "connectors/process.hpp"

namespace {

namespace st = troupe::stream;
namespace connect = troupe::connectors;

constexpr std::chrono::seconds patience{30};

TEST(process, the_output_of_a_program_comes_in_blocks) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::string got;
  auto p = st::from("seq", connect::process_blocks({"seq", "1000", "9999"}, 500)) | st::async({.items = 3}) |
           st::sink("keep", [&](const connect::block& b) { got.append(b->begin(), b->end()); });
  p.start(rt).wait();
  std::string wanted;
  for (int i = 1000; i < 10'000; ++i) wanted += std::to_string(i) + "\n";
  EXPECT_EQ(got, wanted);
}

TEST(process, a_program_waits_while_there_is_no_room) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::atomic<int> blocks{0};
  std::atomic<bool> go{false};
  auto p = st::from("zeros", connect::process_blocks({"head", "-c", "10000000", "/dev/zero"}, 100'000)) |
           st::async({.items = 2}) | st::sink("slow", [&](const connect::block&) {
             while (!go) std::this_thread::yield();
             ++blocks;
           });
  auto r = p.start(rt);
  while (r.report().edges[0].items != 2) std::this_thread::yield();
  EXPECT_EQ(r.report().items.pushed, 2u);
  go = true;
  r.wait();
  EXPECT_EQ(blocks, 100);
}

// The text of the error with which a stream of that program's output fails; its cause must be io_failed.
std::string failure_of(const std::vector<std::string>& command, std::size_t bytes) {
  troupe::runtime rt(troupe::options{.threads = 2});
  auto p = st::from("program", connect::process_blocks(command, bytes)) | st::sink("end", [](const connect::block&) {});
  auto r = p.start(rt);
  try {
    EXPECT_TRUE(r.wait_for(patience));
  } catch (const st::stage_failed& e) {
    try {
      std::rethrow_exception(e.cause());
    } catch (const troupe::error& cause) {
      EXPECT_EQ(cause.code(), troupe::errc::io_failed);
    }
    return e.what();
  }
  return "it did not fail";
}

TEST(process, a_program_that_does_not_end_well_fails_the_stream_with_what_it_said) {
  EXPECT_NE(failure_of({"sh", "-c", "echo ab; echo it is broken >&2; exit 3"}, 3).find("code 3; it said: it is broken"),
            std::string::npos);
  EXPECT_NE(failure_of({"sh", "-c", "kill -9 $$"}, 3).find("signal 9"), std::string::npos);
  EXPECT_NE(failure_of({"printf", "abcd"}, 3).find("in the middle of a block, after 1 bytes"), std::string::npos);
  EXPECT_NE(failure_of({"sh", "-c", "exec >&-; sleep 0.1; exit 5"}, 3).find("code 5"), std::string::npos);
  // Much is said, and nobody listens to all of it: the program goes on.
  EXPECT_NE(failure_of({"sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x >&2; exit 1"}, 3).find("code 1"),
            std::string::npos);
}

TEST(process, a_program_that_is_not_there_is_refused_at_once) {
  try {
    static_cast<void>(connect::process_blocks({"/no/such/program"}, 1));
    FAIL();
  } catch (const troupe::error& e) {
    EXPECT_EQ(e.code(), troupe::errc::io_failed);
  }
  EXPECT_THROW(static_cast<void>(connect::process_blocks({}, 1)), troupe::error);
  EXPECT_THROW(static_cast<void>(connect::process_blocks({"true"}, 0)), troupe::error);
}

TEST(process, a_program_is_killed_when_the_stream_ends_first) {
  troupe::runtime rt(troupe::options{.threads = 2});
  std::atomic<int> pid{0};
  {
    auto p = st::from("endless", connect::process_blocks({"sh", "-c", "printf '%07d\\n' $$; exec sleep 1000"}, 8)) |
             st::sink("pid", [&](const connect::block& b) { pid = std::stoi(std::string(b->begin(), b->end())); });
    auto r = p.start(rt);
    while (pid == 0) std::this_thread::yield();
    EXPECT_EQ(::kill(pid, 0), 0);
    EXPECT_EQ(r.drain(patience).state, st::state::ended);
  }
  rt.wait_all();
  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

}  // namespace
