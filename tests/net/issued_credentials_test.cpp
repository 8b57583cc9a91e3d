// What this file is for: sessions over TCP with secrets and certificates by `troupe keygen`, `ca` and `issue`.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <string>

#include "net/credentials/credentials.hpp"
#include "net/credentials/making.hpp"
#include "net/tcp/tcp.hpp"
#include "tcp_network.hpp"
#include "tests/net/credentials/files.hpp"
#include "tests/support/scratch_folder.hpp"

namespace wires {
namespace {

using namespace troupe;
using namespace troupe::net;
using kind = node::kind;

class by_files final : public network {
 public:
  std::unique_ptr<transport> make(transport_options o) override { return make_tcp(std::move(o)); }
  endpoint anywhere() override { return {"127.0.0.1", 0}; }
  endpoint nowhere() override { return {"127.0.0.1", 1}; }
  bool until(const std::function<bool()>& done) override { return in_time(done); }
};

class issued_credentials : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return (folder.path() / name).string(); }
  credentials member(const std::string& authority, const std::string& node) {
    const auto made = issue_member(at(authority), node, 1);
    return load({.certificate = made.certificate, .key = made.key, .authority = made.authority});
  }
  std::unique_ptr<node> begin(const credentials& proof, const std::string& cluster) {
    transport_options o;
    o.self.id = node_id::random();
    o.self.incarnation = 1;
    o.self.cluster = cluster;
    o.listen = {{"127.0.0.1", 0}};
    o.proof = proof;
    auto n = std::make_unique<node>(network_, std::move(o));
    n->start();
    return n;
  }
  bool meet(const credentials& one, const credentials& other, const std::string& cluster = "physics") {
    const auto from = begin(one, cluster), to = begin(other, cluster);
    from->wire().dial(to->address());
    EXPECT_TRUE(in_time([&] { return (from->with(*to) && to->with(*from)) || from->count(kind::refused) > 0; }));
    return from->count(kind::refused) == 0;
  }
  const test::scratch_folder folder;
  by_files network_;
};

TEST_F(issued_credentials, make_sessions_between_members_of_one_authority_only) {
  make_authority(at("ours"), "physics", 2);
  make_authority(at("theirs"), "physics", 2);
  make_authority(at("chemistry"), "chemistry", 2);
  const auto a = member("ours", "a"), b = member("ours", "b");
  EXPECT_TRUE(meet(a, b));
  EXPECT_TRUE(meet(b, a));
  EXPECT_FALSE(meet(a, member("theirs", "c")));
  EXPECT_FALSE(meet(member("theirs", "d"), a));
  EXPECT_FALSE(meet(a, member("chemistry", "e")));
}

TEST_F(issued_credentials, make_sessions_between_those_who_have_the_secret_only) {
  make_secret(at("one"));
  make_secret(at("two"));
  const auto one = load({.secret_file = at("one")}), two = load({.secret_file = at("two")});
  EXPECT_TRUE(meet(one, one));
  EXPECT_FALSE(meet(one, two));
}

// The three steps of docs/security.md: at each of them every node can dial every other.
TEST_F(issued_credentials, can_be_replaced_step_by_step_while_nodes_run) {
  make_secret(at("old"));
  make_secret(at("new"));
  const std::string old_line = test::text_of(at("old")), new_line = test::text_of(at("new"));
  const credentials steps[] = {load({.secret_file = test::put(at("0"), old_line)}),
                               load({.secret_file = test::put(at("1"), old_line + new_line)}),
                               load({.secret_file = test::put(at("2"), new_line + old_line)}),
                               load({.secret_file = test::put(at("3"), new_line)})};
  for (int i = 0; i + 1 < 4; ++i) {
    EXPECT_TRUE(meet(steps[i], steps[i + 1])) << i;
    EXPECT_TRUE(meet(steps[i + 1], steps[i])) << i;
  }
  EXPECT_FALSE(meet(steps[0], steps[3]));
}

}  // namespace
}  // namespace wires
