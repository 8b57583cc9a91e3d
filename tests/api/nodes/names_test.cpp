// What this file is for: nodes that call themselves the same: one of them is there, and both hear of it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "several_nodes.hpp"

#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <deque>
#include <system_error>
#include <utility>

#include "tests/support/sanitizers.hpp"

namespace {

using test::comes_true;
using test::node_options;
using troupe::errc;
using troupe::runtime;

// Only a refusal for the name counts.
bool says_taken(const runtime& rt, const std::string& name) {
  for (const auto& r : rt.connection_failures())
    if (r.code == errc::refused && r.why.find("another node with the name " + name) != std::string::npos) return true;
  return false;
}

TEST(nodes_names, the_name_of_the_node_that_is_asked_is_refused_and_both_hear_of_it) {
  const runtime a(node_options("a"));
  const runtime other(node_options("a", a.addresses()));
  EXPECT_TRUE(comes_true([&] { return says_taken(other, "a"); }));
  EXPECT_TRUE(comes_true([&] { return says_taken(a, "a"); }));
  EXPECT_TRUE(a.nodes().empty());
  EXPECT_TRUE(other.nodes().empty());
  const runtime b(node_options("b", a.addresses()));
  EXPECT_TRUE(comes_true([&] { return a.nodes().size() == 1; }));
}

TEST(nodes_names, the_name_of_a_third_node_is_refused_while_that_is_there) {
  test::several_nodes n(1);
  const runtime other(node_options("b", n.a.addresses()));
  EXPECT_TRUE(comes_true([&] { return says_taken(other, "b"); }));
  EXPECT_TRUE(comes_true([&] { return says_taken(n.a, "b"); }));
  EXPECT_EQ(n.a.nodes().size(), 1u);
}

// A node that ends without a word. Its process is made before this one has threads, and joins later.
class mortal {
 public:
  explicit mortal(const std::string& name) {
    if (::pipe(whom_.data()) != 0) throw std::system_error(errno, std::generic_category());
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::close(whom_[1]);
    std::string address(256, 0);
    const auto bytes = ::read(whom_[0], address.data(), address.size());
    if (bytes <= 0) ::_exit(1);
    address.resize(static_cast<std::size_t>(bytes));
    try {
      auto o = node_options(name, {address});
      o.cluster.listen.clear();
      const runtime rt(o);
      for (;;) ::pause();
    } catch (...) {
    }
    ::_exit(1);
  }
  mortal(const mortal&) = delete;
  mortal& operator=(const mortal&) = delete;
  ~mortal() {
    die();
    for (const int end : whom_) ::close(end);
  }
  void join(const std::string& address) {
    EXPECT_EQ(::write(whom_[1], address.data(), address.size()), static_cast<ssize_t>(address.size()));
  }
  void die() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, 0), nullptr, 0);
  }

 private:
  std::array<int, 2> whom_{};
  pid_t pid_ = 0;
};

TEST(nodes_names, a_node_that_died_is_not_listed_beside_who_has_come_under_its_name) {
  if (test::sanitizers == "thread") GTEST_SKIP() << "ThreadSanitizer ends children that make threads";
  std::deque<mortal> nodes;
  for (int i = 0; i < 4; ++i) nodes.emplace_back("b");
  const runtime a(node_options("a"));
  std::string last;
  for (mortal& b : nodes) {
    b.join(a.addresses().at(0));
    const auto is_new = [&] {
      const auto all = a.nodes();
      return all.size() == 1 && all[0].id != last;
    };
    ASSERT_TRUE(comes_true(is_new)) << a.nodes().size() << " are listed";
    last = a.nodes().at(0).id;
    b.die();
  }
}

}  // namespace
