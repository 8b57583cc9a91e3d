// What this file is for: UCX as a fabric: which peers it listens to, what it leaves alone, when it rests.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#ifdef TROUPE_HAVE_UCX
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "net/ucx/plugin.hpp"
#include "tcp_network.hpp"
#include "tests/support/driver_leaks.hpp"

extern char** environ;

namespace {

using namespace troupe::net;
using wires::bytes;
using wires::noise;
using wires::real_ucx;

struct listener final : fabric_told {
  void greeted() override { ++greetings; }
  std::span<std::byte> destination(std::uint64_t, std::uint64_t, std::uint64_t size) override {
    ++parts;
    body.resize(size);
    return body;
  }
  void placed(std::uint64_t, std::uint64_t) override { ++placed_parts; }
  void sent(std::uint64_t, std::uint64_t) override { ++sent_parts; }
  void broken(const std::string& text) override { why = text; }

  int greetings = 0, parts = 0, placed_parts = 0, sent_parts = 0;
  bytes body;
  std::string why;
};

fabric_token token(unsigned char n) {
  fabric_token t;
  t.fill(static_cast<std::byte>(n));
  return t;
}

/// Two ends in this process, and a path each.
class ucx_fabric : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(a_ && b_);
    from_a_ = a_->open(token(1), heard_by_a_);
    from_b_ = b_->open(token(2), heard_by_b_);
  }
  void TearDown() override {
    if (!a_ || !b_) return;
    int closed = 0;
    for (auto* p : {&from_a_, &from_b_})
      if (*p) (*p)->close([&] { ++closed; });
    EXPECT_TRUE(until([&] { return closed == 2; }));
  }
  bool until(const std::function<bool()>& done) {
    return wires::in_time([&] {
      a_->work();
      b_->work();
      return done();
    });
  }
  std::unique_ptr<bulk_fabric> a_ = real_ucx(), b_ = real_ucx();
  listener heard_by_a_, heard_by_b_;
  std::unique_ptr<fabric_path> from_a_, from_b_;
};

TEST_F(ucx_fabric, moves_bytes_from_memory_to_memory) {
  EXPECT_EQ(from_a_->connect(b_->address(), token(2)), std::nullopt);
  from_a_->greet();
  ASSERT_TRUE(until([&] { return heard_by_b_.greetings == 1; }));
  const bytes body = noise(5'000'001, 1);
  from_a_->send(7, 0, body);
  ASSERT_TRUE(until([&] { return heard_by_b_.placed_parts == 1 && heard_by_a_.sent_parts == 1; }));
  EXPECT_TRUE(heard_by_b_.body == body);
}

TEST_F(ucx_fabric, hears_nobody_without_the_token) {
  ASSERT_EQ(from_a_->connect(b_->address(), token(3)), std::nullopt);
  const bytes body = noise(1'000'000, 1);
  from_a_->greet();
  from_a_->send(7, 0, body);
  // A peer that has the token is heard after that.
  listener other;
  const auto second = a_->open(token(4), other);
  ASSERT_EQ(second->connect(b_->address(), token(2)), std::nullopt);
  second->greet();
  ASSERT_TRUE(until([&] { return heard_by_b_.greetings == 1 && heard_by_a_.sent_parts == 1; }));
  EXPECT_EQ(heard_by_b_.parts, 0);
  bool closed = false;
  second->close([&] { closed = true; });
  ASSERT_TRUE(until([&] { return closed; }));
}

TEST_F(ucx_fabric, hears_nothing_more_of_a_session_that_has_ended) {
  ASSERT_EQ(from_a_->connect(b_->address(), token(2)), std::nullopt);
  from_a_->greet();
  ASSERT_TRUE(until([&] { return heard_by_b_.greetings == 1; }));
  bool closed = false;
  from_b_->close([&] { closed = true; });
  ASSERT_TRUE(until([&] { return closed; }));
  from_b_ = b_->open(token(5), heard_by_b_);
  const bytes body = noise(1'000'000, 1);
  from_a_->send(7, 0, body);
  ASSERT_TRUE(until([&] { return heard_by_a_.sent_parts == 1 || !heard_by_a_.why.empty(); }));
  EXPECT_EQ(heard_by_b_.parts, 0);
}

TEST_F(ucx_fabric, rests_when_there_is_nothing_to_do_and_is_woken) {
  ASSERT_EQ(from_a_->connect(b_->address(), token(2)), std::nullopt);
  ASSERT_TRUE(until([&] { return !a_->work() && !b_->work() && b_->rest(); }));
  pollfd wakes{b_->descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&wakes, 1, 0), 0) << "it would never rest";
  from_a_->greet();
  while (a_->work()) {
  }
  ASSERT_EQ(::poll(&wakes, 1, 60'000), 1) << "it would sleep for ever";
  ASSERT_TRUE(until([&] { return heard_by_b_.greetings == 1; }));
}

TEST_F(ucx_fabric, says_so_when_there_is_no_way_and_writes_nothing) {
  ::setenv("UCX_TLS", "self", 1);
  const auto far = real_ucx();  // which nobody else reaches
  ::unsetenv("UCX_TLS");
  ASSERT_TRUE(far);
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const auto why_not = from_a_->connect(far->address(), token(2));
  EXPECT_EQ(testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr(), "");
  ASSERT_TRUE(why_not);
  EXPECT_NE(why_not->find("unreachable"), std::string::npos) << *why_not;
}

struct disposition {
  std::uintptr_t handler = 0;
  int flags = 0;
  std::vector<int> masked{};
  bool operator==(const disposition&) const = default;
};

std::map<int, disposition> handlers() {
  std::map<int, disposition> all;
  for (int s = 1; s < NSIG; ++s) {
    struct sigaction now {};
    if (::sigaction(s, nullptr, &now) != 0) continue;
    disposition& d = all[s];
    d.handler = reinterpret_cast<std::uintptr_t>(now.sa_handler);
    d.flags = now.sa_flags & ~0x04000000;  // the C library's own, set whenever somebody sets anything
    if (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN) continue;  // a mask is for a handler
    for (int other = 1; other < NSIG; ++other)
      if (sigismember(&now.sa_mask, other) == 1) d.masked.push_back(other);
  }
  return all;
}

/// The code of functions that UCX would like to know the calls of.
std::map<std::string, bytes> beginnings() {
  std::map<std::string, bytes> all;
  void* const c = ::dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  EXPECT_NE(c, nullptr);
  for (const char* name : {"mmap", "munmap", "mremap", "madvise", "shmat", "shmdt", "brk", "sbrk"}) {
    const auto* const code = static_cast<const std::byte*>(::dlsym(c, name));
    EXPECT_NE(code, nullptr) << name;
    all[name].assign(code, code + 16);
  }
  ::dlclose(c);
  return all;
}

std::string environment() {
  std::string all;
  for (char** e = environ; *e; ++e) all += std::string(*e) + "\n";
  return all;
}

void own_handler(int) {}

// A test of ctest is a process of its own, so this is where UCX is loaded.
TEST(ucx, leaves_signals_environment_output_and_code_to_the_program) {
  struct sigaction own {};
  own.sa_handler = own_handler;
  sigaddset(&own.sa_mask, SIGUSR1);
  struct sigaction before_own {};
  ASSERT_EQ(::sigaction(SIGHUP, &own, &before_own), 0);
  const auto before = handlers();
  const auto variables = environment();
  const auto code = beginnings();
  stack_t stack_before{}, stack_after{};
  ::sigaltstack(nullptr, &stack_before);
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  auto fabric = real_ucx();
  while (fabric && fabric->work()) {
  }
  const bool opened = fabric != nullptr;
  fabric.reset();
  EXPECT_EQ(testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr(), "");
  ASSERT_TRUE(opened);
  ::sigaltstack(nullptr, &stack_after);
  EXPECT_EQ(stack_after.ss_sp, stack_before.ss_sp);
  EXPECT_EQ(stack_after.ss_flags, stack_before.ss_flags);
  for (const auto& [signal, now] : handlers())
    EXPECT_TRUE(now == before.at(signal))
        << "signal " << signal << ": " << now.handler << ", flags " << now.flags << ", was "
        << before.at(signal).handler << ", flags " << before.at(signal).flags;
  EXPECT_EQ(environment(), variables);
  for (const auto& [name, now] : beginnings()) EXPECT_TRUE(now == code.at(name)) << name << " has been written over";
  void* const loaded = ::dlopen("libucs.so.0", RTLD_LAZY | RTLD_NOLOAD);
  EXPECT_NE(loaded, nullptr) << "UCX was never there";
  if (loaded) ::dlclose(loaded);
  ::sigaction(SIGHUP, &before_own, nullptr);
}

TEST(ucx, of_another_release_is_refused) {
  const auto file = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "../lib" / ucx::plugin_file;
  void* const plugin = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(plugin, nullptr) << ::dlerror();
  auto* const open =
      reinterpret_cast<troupe::net::ucx::plugin_function*>(::dlsym(plugin, troupe::net::ucx::plugin_entry));
  ASSERT_NE(open, nullptr);
  std::string why;
  EXPECT_EQ(open("troupe 0.0.9, seam 1", true, &why), nullptr);
}

}  // namespace
#endif
