// What this file is for: `troupe keygen`, `troupe ca` and `troupe issue`, run as users do; what they say of themselves.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <troupe/credentials.hpp>
#include <troupe/error.hpp>

#include "tests/support/processes.hpp"
#include "tests/support/scratch_folder.hpp"

namespace {

using test::ended_with;
using test::finished;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class the_tool : public testing::Test {
 protected:
  static finished troupe(std::vector<std::string> words) {
    words.insert(words.begin(), TROUPE_BIN_DIR "/troupe");
    return test::run(std::move(words));
  }
  // Returns the one line on stderr; nothing is on stdout.
  static std::string refusal(const std::vector<std::string>& words, int code) {
    const auto done = troupe(words);
    EXPECT_EQ(done.how, ended_with(code)) << done.err;
    EXPECT_THAT(done.out, IsEmpty());
    EXPECT_EQ(std::count(done.err.begin(), done.err.end(), '\n'), 1) << done.err;
    EXPECT_THAT(done.err, StartsWith("troupe: "));
    return done.err;
  }
  std::string at(const std::string& name) const { return (folder.path() / name).string(); }
  static std::string text_of(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  const test::scratch_folder folder;
};

TEST_F(the_tool, makes_a_secret_that_only_its_owner_may_read) {
  const auto done = troupe({"keygen", at("secret")});
  EXPECT_EQ(done.how, ended_with(0)) << done.err;
  EXPECT_THAT(done.out, HasSubstr(at("secret")));
  const std::string secret = text_of(at("secret"));
  EXPECT_THAT(secret, testing::MatchesRegex("[0-9a-f]+\n"));
  EXPECT_EQ(secret.size(), 65u);
  EXPECT_EQ(done.out.find(secret.substr(0, 64)), std::string::npos);  // it is not shown
  struct stat about {};
  ASSERT_EQ(::stat(at("secret").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777u, 0600u);
}

TEST_F(the_tool, replaces_nothing) {
  troupe({"keygen", at("secret")});
  const std::string secret = text_of(at("secret"));
  EXPECT_THAT(refusal({"keygen", at("secret")}, 1), HasSubstr("is there already"));
  EXPECT_EQ(text_of(at("secret")), secret);
  troupe({"ca", at("ca"), "--cluster", "c"});
  const std::string key = text_of(at("ca/ca.key"));
  EXPECT_THAT(refusal({"ca", at("ca"), "--cluster", "c"}, 1), HasSubstr("is there already"));
  EXPECT_EQ(text_of(at("ca/ca.key")), key);
}

TEST_F(the_tool, makes_an_authority_and_issues_certificates) {
  const auto made = troupe({"ca", at("ca"), "--cluster", "physics", "--days", "400"});
  EXPECT_EQ(made.how, ended_with(0)) << made.err;
  EXPECT_THAT(made.out, AllOf(HasSubstr("physics"), HasSubstr(at("ca"))));
  const auto issued = troupe({"issue", at("ca"), "--name", "n1", "--days", "7"});
  EXPECT_EQ(issued.how, ended_with(0)) << issued.err;
  for (const char* name : {"ca/ca.pem", "ca/n1.pem", "ca/n1.key"}) {
    EXPECT_TRUE(std::filesystem::exists(at(name)));
    EXPECT_THAT(issued.out, HasSubstr(at(name)));
  }
  EXPECT_EQ(troupe({"issue", at("ca"), "--name", "n2"}).how, ended_with(0)) << "the usual number of days";
}

TEST_F(the_tool, says_in_one_line_what_is_wrong_with_what_is_there) {
  EXPECT_THAT(refusal({"issue", at("none"), "--name", "n"}, 1), HasSubstr(at("none/ca.pem")));
  EXPECT_THAT(refusal({"keygen", at("no/such/folder")}, 1), HasSubstr("No such file"));
  troupe({"ca", at("ca"), "--cluster", "c", "--days", "10"});
  EXPECT_THAT(refusal({"issue", at("ca"), "--name", "n"}, 1), HasSubstr("days at most"));
  EXPECT_THAT(refusal({"issue", at("ca"), "--name", "../n", "--days", "5"}, 1), HasSubstr("not a name"));
  EXPECT_THAT(refusal({"ca", at("b"), "--cluster", "a b"}, 1), HasSubstr("not a name"));
  ::chmod(at("ca/ca.key").c_str(), 0644);
  EXPECT_THAT(refusal({"issue", at("ca"), "--name", "n", "--days", "5"}, 1), HasSubstr("chmod 600"));
}

TEST_F(the_tool, says_in_one_line_what_is_wrong_with_the_command_line) {
  EXPECT_THAT(refusal({}, 2), HasSubstr("--help"));
  EXPECT_THAT(refusal({"dance"}, 2), HasSubstr("dance"));
  EXPECT_THAT(refusal({"keygen"}, 2), HasSubstr("FILE"));
  EXPECT_THAT(refusal({"keygen", at("a"), at("b")}, 2), HasSubstr(at("b")));
  EXPECT_THAT(refusal({"ca", at("ca")}, 2), HasSubstr("--cluster"));
  EXPECT_THAT(refusal({"issue", at("ca")}, 2), HasSubstr("--name"));
  EXPECT_THAT(refusal({"issue", at("ca"), "--name", "n", "--days", "many"}, 2), HasSubstr("--days"));
  EXPECT_THAT(refusal({"devices", "--yaml"}, 2), HasSubstr("--yaml"));
  for (const char* quantity : {"two", "=2", "a=", "a=2x", "a=-1", "a=nan"})
    EXPECT_THAT(refusal({"node", "--cluster", "c", "--insecure-loopback", "--resource", quantity}, 2),
                HasSubstr(std::string("not '") + quantity));
  EXPECT_THAT(refusal({"node", "--cluster", "c", "--insecure-loopback", "--resource", "cpu=2"}, 1), HasSubstr("cpu"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST_F(the_tool, explains_itself) {
  const auto all = troupe({"--help"});
  EXPECT_EQ(all.how, ended_with(0));
  const std::string version = troupe({"--version"}).out;
  for (const char* command : {"devices", "keygen", "ca", "issue", "node", "nodes"}) {
    EXPECT_EQ(troupe({command, "--version"}).out, version);
    EXPECT_THAT(all.out, HasSubstr(command));
    const auto one = troupe({command, "--help"});
    EXPECT_EQ(one.how, ended_with(0));
    EXPECT_THAT(one.out, HasSubstr(std::string("troupe ") + command));
    EXPECT_THAT(one.err, IsEmpty());
  }
}

TEST_F(the_tool, lists_devices_for_people_and_for_programs) {
  const auto table = troupe({"devices", "--no-measure"});
  EXPECT_EQ(table.how, ended_with(0)) << table.err;
  EXPECT_THAT(table.out, AllOf(HasSubstr("cpu:0"), HasSubstr("sim:0")));
  const auto json = troupe({"devices", "--json", "--no-measure"});
  EXPECT_EQ(json.how, ended_with(0)) << json.err;
  EXPECT_THAT(json.out, AllOf(StartsWith("["), HasSubstr("\"name\": \"cpu:0\"")));
}

TEST_F(the_tool, fails_where_its_output_cannot_be_written) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  const auto done = test::run({"sh", "-c", "\"$0\" devices --no-measure > /dev/full", TROUPE_BIN_DIR "/troupe"});
  EXPECT_EQ(done.how, ended_with(1));
}

// The same from a program.
TEST_F(the_tool, does_what_the_library_does) {
  using namespace ::troupe;
  make_cluster_secret(at("secret"));
  EXPECT_EQ(text_of(at("secret")).size(), 65u);
  make_cluster_authority(at("ca"), "c");
  const auto files = issue_certificate(at("ca"), "n");
  EXPECT_EQ(files.certificate, at("ca/n.pem"));
  EXPECT_EQ(files.key, at("ca/n.key"));
  EXPECT_EQ(files.authority, at("ca/ca.pem"));
  try {
    issue_certificate(at("ca"), "n");
    FAIL() << "a certificate was replaced";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::io_failed);
  }
}

}  // namespace
