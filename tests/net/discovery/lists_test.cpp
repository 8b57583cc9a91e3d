// What this file is for: candidates from seeds, files that change and names, told again when they are due.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "heard.hpp"
#include "net/discovery/lists.hpp"
#include "tests/net/credentials/files.hpp"
#include "tests/support/comes_true.hpp"
#include "tests/support/scratch_folder.hpp"

namespace {

using namespace troupe;
using namespace troupe::net;
using namespace std::chrono_literals;
using test::comes_true;
using test::complaint;
using test::heard;
using test::put;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const endpoint a{"10.0.0.1", 1}, b{"10.0.0.2", 2}, c{"node.cluster", 3};

// Replaces a file that others read, as that should be done.
void replace(const std::string& path, const std::string& text) {
  put(path + ".new", text);
  std::filesystem::rename(path + ".new", path);
}

TEST(address_lists, have_one_address_a_line_and_comments) {
  EXPECT_THAT(parse_addresses("10.0.0.1:1\n\n  # nothing\r\n\t10.0.0.2:2 # the second\nnode.cluster:3"),
              ElementsAre(a, b, c));
  EXPECT_THAT(parse_addresses(""), IsEmpty());
  EXPECT_THAT(parse_addresses("[::1]:7\n"), ElementsAre(endpoint{"::1", 7}));
}

TEST(address_lists, are_refused_by_the_number_of_the_wrong_line) {
  for (const char* wrong : {"host", "host:0", "host:port", "host:65536", ":1", "a b:1", "::1:1:", "a:1 b:2"})
    EXPECT_THAT(complaint(errc::bad_argument, [&] { parse_addresses("10.0.0.1:1\n" + std::string(wrong)); }),
                HasSubstr("line 2"))
        << wrong;
}

class address_files : public testing::Test {
 protected:
  const test::scratch_folder folder;
  const std::string path = (folder.path() / "nodes").string();
};

TEST_F(address_files, are_read_again_only_when_they_have_changed) {
  put(path, "10.0.0.1:1\n");
  address_file file(path);
  EXPECT_THAT(*file.look(), ElementsAre(a));
  EXPECT_FALSE(file.look());
  replace(path, "10.0.0.2:2\n");  // of the same size
  EXPECT_THAT(*file.look(), ElementsAre(b));
  EXPECT_FALSE(file.look());
  std::ofstream(path, std::ios::app) << "10.0.0.1:1\n";
  EXPECT_THAT(*file.look(), ElementsAre(b, a));
}

TEST_F(address_files, that_are_gone_or_wrong_are_complained_about_once) {
  address_file file(path);
  EXPECT_THAT(complaint(errc::io_failed, [&] { file.look(); }), HasSubstr("'" + path + "'"));
  EXPECT_FALSE(file.look());
  put(path, "what?\n");
  EXPECT_THAT(complaint(errc::bad_argument, [&] { file.look(); }), HasSubstr("line 1"));
  EXPECT_FALSE(file.look());
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  EXPECT_THAT(complaint(errc::bad_argument, [&] { file.look(); }), HasSubstr("not a regular file"));
}

TEST_F(address_files, give_candidates_as_they_change_and_keep_the_last_good_ones) {
  put(path, "10.0.0.1:1\n");
  heard told;
  const auto d = make_discovery({.file = path, .look_every = 5ms, .tell_again = 20ms});
  d->start(told.teller());
  EXPECT_TRUE(told.waits_for(a));
  replace(path, "10.0.0.1:1\n10.0.0.2:2\n");
  EXPECT_TRUE(told.waits_for(b));
  replace(path, "nonsense\n");
  EXPECT_TRUE(comes_true([&] { return !d->problems().empty(); }));
  EXPECT_THAT(d->problems(), ElementsAre(HasSubstr("line 1")));
  const auto before = std::ranges::count(told.all(), b);
  EXPECT_TRUE(told.waits_for(b, before + 2));
  replace(path, "node.cluster:3\n");
  EXPECT_TRUE(told.waits_for(c));
  EXPECT_THAT(d->problems(), IsEmpty());
}

TEST_F(address_files, that_cannot_be_read_at_the_start_are_an_error_there) {
  const auto d = make_discovery({.file = path});
  heard told;
  complaint(errc::io_failed, [&] { d->start(told.teller()); });
  put(path, "wrong\n");
  complaint(errc::bad_argument, [&] { d->start(told.teller()); });
  put(path, "10.0.0.1:1\n");
  d->start(told.teller());
  EXPECT_TRUE(told.waits_for(a));
}

TEST(seeds, are_told_at_once_and_again_when_they_are_due) {
  heard told;
  const auto d = make_discovery({.seeds = {a, c, a}, .look_every = 1ms, .tell_again = 30ms});
  const auto before = std::chrono::steady_clock::now();
  d->start(told.teller());
  EXPECT_TRUE(told.waits_for(a, 3));
  EXPECT_GE(std::chrono::steady_clock::now() - before, 60ms);  // not more often
  EXPECT_TRUE(told.waits_for(c, 3));
}

TEST(seeds, are_not_told_after_the_end) {
  heard told;
  const auto d = make_discovery({.seeds = {a}, .look_every = 1ms, .tell_again = 1ms});
  d->stop();  // before it began
  d->start(told.teller());
  EXPECT_TRUE(told.waits_for(a, 2));
  d->stop();
  const auto n = told.all().size();
  d->stop();
  EXPECT_EQ(told.all().size(), n);
  d->start(told.teller());  // and begins again
  EXPECT_TRUE(told.waits_for(a, static_cast<std::ptrdiff_t>(n) + 1));
  complaint(errc::bad_argument, [&] { d->start(told.teller()); });
}

TEST(seeds, that_are_no_addresses_are_refused) {
  complaint(errc::bad_argument, [] { make_discovery({.seeds = {{"", 1}}}); });
  complaint(errc::bad_argument, [] { make_discovery({.seeds = {{"host", 0}}}); });
  complaint(errc::bad_argument, [] { make_discovery({.names = {{"host", 0}}}); });
  complaint(errc::bad_argument, [] { make_discovery({.seeds = {a}, .look_every = 0ms}); });
}

TEST(names, are_resolved_to_addresses) {
  EXPECT_THAT(resolve({"localhost", 80}), Contains(endpoint{"127.0.0.1", 80}));
  EXPECT_THAT(resolve({"127.0.0.9", 80}), ElementsAre(endpoint{"127.0.0.9", 80}));
  heard told;
  const auto d = make_discovery({.names = {{"localhost", 80}}});
  d->start(told.teller());
  EXPECT_TRUE(told.waits_for({"127.0.0.1", 80}));
}

TEST(names, that_nobody_knows_are_a_problem_that_holds_up_nothing_else) {
  EXPECT_THAT(complaint(errc::unreachable,
                        [] {
                          resolve({"no-such-host.invalid", 1});
                        }),
              HasSubstr("'no-such-host.invalid'"));
  heard told;
  const auto d = make_discovery({.seeds = {a}, .names = {{"no-such-host.invalid", 1}, {"localhost", 80}}});
  d->start(told.teller());
  EXPECT_TRUE(told.waits_for({"127.0.0.1", 80}));
  EXPECT_EQ(told.all().front(), a);
  EXPECT_THAT(d->problems(), ElementsAre(HasSubstr("no-such-host.invalid")));
}

// Runs in a process of its own, which sees another file of hosts.
int with_hosts(const std::string& path) {
  put(path, "127.0.0.1 localhost\n10.1.1.1 several.cluster\n10.1.1.2 several.cluster\n", 0644);
  // In place: the mount shows this very file.
  if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount(path.c_str(), "/etc/hosts", nullptr, MS_BIND, nullptr) != 0)
    return 77;
  heard told;
  const auto d = make_discovery({.names = {{"several.cluster", 5}, {"later.cluster", 6}}, .look_every = 10ms});
  d->start(told.teller());
  if (!told.waits_for({"10.1.1.1", 5}) || !told.waits_for({"10.1.1.2", 5})) return 1;
  std::ofstream(path, std::ios::app) << "10.1.1.3 several.cluster\n10.1.1.4 later.cluster\n";
  if (!told.waits_for({"10.1.1.3", 5}) || !told.waits_for({"10.1.1.4", 6})) return 2;
  return comes_true([&] { return d->problems().empty(); }) ? 0 : 3;
}

// The same for a name server that takes questions and never answers.
int with_silent_name_server(const std::string& path) {
  put(path, "nameserver 127.0.0.1\n", 0644);
  if (::unshare(CLONE_NEWNS | CLONE_NEWNET) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount(path.c_str(), "/etc/resolv.conf", nullptr, MS_BIND, nullptr) != 0)
    return 77;
  const int server = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq lo{};
  std::strcpy(lo.ifr_name, "lo");
  lo.ifr_flags = IFF_UP;
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_port = htons(53);
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::ioctl(server, SIOCSIFFLAGS, &lo) != 0 || ::bind(server, reinterpret_cast<sockaddr*>(&own), sizeof own) != 0)
    return 77;
  heard told;
  const auto d = make_discovery({.seeds = {a}, .names = {{"some.cluster", 5}}});
  d->start(told.teller());
  pollfd question{server, POLLIN, 0};
  if (::poll(&question, 1, 20'000) != 1) return 1;
  if (!told.waits_for(a)) return 2;  // does not wait for the answer
  const auto before = std::chrono::steady_clock::now();
  d->stop();
  return std::chrono::steady_clock::now() - before < 4s ? 0 : 3;
}

// Runs it in a process of its own. Gives what it gives.
int apart(int (*what)(const std::string&)) {
  const test::scratch_folder folder;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(what((folder.path() / "file").string()));
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

TEST(names, with_several_addresses_give_all_of_them_and_those_that_come_later) {
  const int said = apart(with_hosts);
  if (said == 77) GTEST_SKIP() << "another /etc/hosts needs the right to mount (CAP_SYS_ADMIN)";
  EXPECT_EQ(said, 0);
}

TEST(names, hold_up_the_end_for_a_few_seconds_at_most) {
  const int said = apart(with_silent_name_server);
  if (said == 77) GTEST_SKIP() << "another name server needs the right to mount (CAP_SYS_ADMIN)";
  EXPECT_EQ(said, 0);
}

}  // namespace
