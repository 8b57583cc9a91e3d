// What this file is for: nodes that call themselves the same: one of them is there, and both hear of it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "several_nodes.hpp"

#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdlib>
#include <string>
#include <system_error>
#include <vector>

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

constexpr const char* whom = "TROUPE_TEST_WHOM_TO_JOIN";

// What a mortal's process runs.
TEST(nodes_names, DISABLED_a_node_that_stays_until_it_is_killed) {
  const char* const address = std::getenv(whom);
  ASSERT_NE(address, nullptr);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  auto o = node_options("b", {address});
  o.cluster.listen.clear();
  const runtime rt(o);
  for (;;) ::pause();
}

// A node that ends without a word, in a program of its own: a child by fork would have the memory of a process with
// threads, and a sanitizer's allocator may be locked there for ever.
class mortal {
 public:
  explicit mortal(const std::string& address) {
    std::string words[] = {"a node", "--gtest_also_run_disabled_tests",
                           "--gtest_filter=nodes_names.DISABLED_a_node_that_stays_until_it_is_killed"};
    char* argv[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
    std::string joins = std::string(whom) + "=" + address;
    std::vector<char*> variables{joins.data()};  // this process has threads: its own variables stay as they are
    for (char** v = environ; *v; ++v) variables.push_back(*v);
    variables.push_back(nullptr);
    const int failed = ::posix_spawn(&pid_, "/proc/self/exe", nullptr, nullptr, argv, variables.data());
    if (failed != 0) throw std::system_error(failed, std::generic_category());
  }
  mortal(const mortal&) = delete;
  mortal& operator=(const mortal&) = delete;
  ~mortal() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_ = 0;
};

TEST(nodes_names, a_node_that_died_is_not_listed_beside_who_has_come_under_its_name) {
  const runtime a(node_options("a"));
  std::string last;
  for (int i = 0; i < 4; ++i) {
    const mortal b(a.addresses().at(0));
    const auto is_new = [&] {
      const auto all = a.nodes();
      return all.size() == 1 && all[0].id != last;
    };
    ASSERT_TRUE(comes_true(is_new)) << a.nodes().size() << " are listed";
    last = a.nodes().at(0).id;
  }
}

}  // namespace
