// What this file is for: what `troupe nodes` and `troupe node` say where they are not let in.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include <troupe/credentials.hpp>
#include <troupe/troupe.hpp>

#include "tests/api/json.hpp"
#include "tests/support/processes.hpp"
#include "tests/support/scratch_folder.hpp"

namespace {

using test::ended_with;
using test::finished;
using test::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

using words = std::vector<std::string>;

class the_tool_refused : public testing::Test {
 protected:
  the_tool_refused() {
    troupe::make_cluster_secret(at("secret"));
    troupe::make_cluster_secret(at("other_secret"));
  }
  std::string at(const std::string& name) const { return (folder_.path() / name).string(); }

  /// A member of the cluster "lab".
  troupe::options member(const std::string& secret = "secret") const {
    troupe::options o;
    o.threads = 1;
    o.cluster.cluster_name = "lab";
    o.cluster.node_name = "there";
    if (!secret.empty()) o.cluster.secret_file = at(secret);
    o.cluster.listen = {"127.0.0.1:0"};
    return o;
  }
  /// With a certificate of an authority of its own.
  troupe::options member_by(const std::string& authority) const {
    troupe::make_cluster_authority(at(authority), "lab", 10);
    const troupe::certificate_files made = troupe::issue_certificate(at(authority), "there", 10);
    troupe::options o = member("");
    o.cluster.certificate = made.certificate;
    o.cluster.key = made.key;
    o.cluster.authority = made.authority;
    return o;
  }
  static finished troupe_nodes(const std::string& join, words more) {
    words all{TROUPE_BIN_DIR "/troupe", "nodes", "--join", join, "--look", "2000"};
    all.insert(all.end(), more.begin(), more.end());
    return test::run(std::move(all));
  }
  /// Nobody was found, and it says why in one line that begins so.
  static std::string reason(const std::string& join, const words& more) {
    const finished done = troupe_nodes(join, more);
    EXPECT_EQ(done.how, ended_with(1)) << done.err;
    EXPECT_EQ(done.out, "no node answered\n");
    EXPECT_EQ(std::count(done.err.begin(), done.err.end(), '\n'), 1) << done.err;
    EXPECT_THAT(done.err, AllOf(StartsWith("troupe: "), HasSubstr(join)));
    return done.err;
  }

 private:
  const test::scratch_folder folder_;
};

TEST_F(the_tool_refused, with_another_secret_says_so) {
  troupe::runtime there(member());
  EXPECT_THAT(reason(there.addresses().front(), {"--cluster", "lab", "--secret-file", at("other_secret")}),
              HasSubstr("check that both have the same secret"));
}

TEST_F(the_tool_refused, with_another_authority_says_so) {
  troupe::runtime there(member_by("ca"));
  troupe::make_cluster_authority(at("other_ca"), "lab", 10);
  const auto other = troupe::issue_certificate(at("other_ca"), "here", 10);
  EXPECT_THAT(reason(there.addresses().front(),
                     {"--cluster", "lab", "--cert", other.certificate, "--key", other.key, "--ca", other.authority}),
              HasSubstr("the other side's certificate is not accepted"));
}

TEST_F(the_tool_refused, with_a_secret_where_certificates_are_asked_for_says_so) {
  troupe::runtime there(member_by("ca"));
  EXPECT_THAT(reason(there.addresses().front(), {"--cluster", "lab", "--secret-file", at("secret")}),
              HasSubstr("no node of a cluster with the same kind of proof"));
}

TEST_F(the_tool_refused, by_a_node_of_another_cluster_says_which) {
  troupe::runtime there(member());
  EXPECT_THAT(reason(there.addresses().front(), {"--cluster", "kitchen", "--secret-file", at("secret")}),
              HasSubstr("does not admit this node: it belongs to cluster lab, not to kitchen"));
}

TEST_F(the_tool_refused, where_nobody_listens_says_so) {
  EXPECT_THAT(reason("127.0.0.1:1", {"--cluster", "lab", "--secret-file", at("secret")}),
              HasSubstr("cannot connect to 127.0.0.1:1: Connection refused"));
}

TEST_F(the_tool_refused, says_it_to_programs_too) {
  troupe::runtime there(member());
  const std::string address = there.addresses().front();
  const finished done = troupe_nodes(address, {"--cluster", "kitchen", "--secret-file", at("secret"), "--json"});
  EXPECT_EQ(done.how, ended_with(1));
  const json all = test::json_reader::read(done.out);
  ASSERT_EQ(all["refusals"].list.size(), 1u) << "the name of an earlier release: " << done.out;
  ASSERT_EQ(all["connection_failures"].list.size(), 1u) << done.out;
  EXPECT_EQ(all["connection_failures"].list[0]["address"].string, address);
  EXPECT_EQ(all["connection_failures"].list[0]["code"].string, "refused");
  EXPECT_THAT(all["connection_failures"].list[0]["why"].string, HasSubstr("it belongs to cluster lab"));
}

TEST_F(the_tool_refused, as_a_worker_says_so) {
  troupe::runtime there(member());
  const std::string address = there.addresses().front();
  test::child node({TROUPE_BIN_DIR "/troupe", "node", "--cluster", "lab", "--secret-file", at("other_secret"),
                    "--threads", "1", "--join", address});
  EXPECT_THAT(node.line_after("refused "),
              AllOf(StartsWith(address), HasSubstr("check that both have the same secret")));
  node.signal(SIGTERM);
  EXPECT_EQ(node.wait(), ended_with(0));
  test::child let_in({TROUPE_BIN_DIR "/troupe", "node", "--cluster", "lab", "--secret-file", at("secret"), "--threads",
                      "1", "--join", address});
  let_in.line_after("joined there");
  let_in.signal(SIGTERM);
  EXPECT_EQ(let_in.wait(), ended_with(0));
  EXPECT_EQ(let_in.out().find("refused"), std::string::npos) << let_in.out();
}

TEST_F(the_tool_refused, is_known_to_a_program_until_somebody_is_there) {
  troupe::options o = member();
  o.cluster.node_name = "here";
  std::string address;
  {
    troupe::runtime first(member());
    address = first.addresses().front();
  }
  o.cluster.join = {address};  // nobody any more
  troupe::runtime here(o);
  const auto until = [&](auto what) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!what(here.connection_failures()) && std::chrono::steady_clock::now() < end)
      here.wait_for_nodes(1000, std::chrono::milliseconds(1));
    return what(here.connection_failures());
  };
  ASSERT_TRUE(until([](const auto& all) { return all.size() == 1; }));
  EXPECT_EQ(here.connection_failures()[0].address, address);
  EXPECT_EQ(here.connection_failures()[0].code, troupe::errc::unreachable);
  troupe::options again = member();
  again.cluster.listen = {address};
  troupe::runtime second(again);
  ASSERT_TRUE(here.wait_for_nodes(1, std::chrono::seconds(20)));
  EXPECT_TRUE(until([](const auto& all) { return all.empty(); }));
}

}  // namespace
