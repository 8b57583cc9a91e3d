// What this file is for: what the environment says of a cluster, and where a program has said it already.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <troupe/cluster.hpp>

namespace {

using troupe::cluster_options;
using troupe::with_environment;
using names = std::vector<std::string>;

/// The variables have these values while it lives.
class environment {
 public:
  explicit environment(const std::map<std::string, std::string>& values) {
    for (const auto& [name, value] : values) {
      const char* const old = std::getenv(name.c_str());
      before_[name] = old ? std::optional<std::string>(old) : std::nullopt;
      ::setenv(name.c_str(), value.c_str(), 1);
    }
  }
  ~environment() {
    for (const auto& [name, value] : before_)
      value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
  }
  environment(const environment&) = delete;
  environment& operator=(const environment&) = delete;

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

const std::map<std::string, std::string> all_of_them{
    {"TROUPE_CLUSTER", "lab"},     {"TROUPE_NODE", "n7"},     {"TROUPE_LISTEN", "127.0.0.1:4711,[::1]:4711"},
    {"TROUPE_JOIN", "a:1,b:2"},    {"TROUPE_MULTICAST", "1"}, {"TROUPE_SECRET_FILE", "/secret"},
    {"TROUPE_TRUSTED_FABRIC", "1"}};

TEST(cluster_environment, stands_for_what_the_options_do_not_say) {
  const environment now(all_of_them);
  const cluster_options o = with_environment({});
  EXPECT_EQ(o.cluster_name, "lab");
  EXPECT_EQ(o.node_name, "n7");
  EXPECT_EQ(o.listen, (names{"127.0.0.1:4711", "[::1]:4711"}));
  EXPECT_EQ(o.join, (names{"a:1", "b:2"}));
  EXPECT_TRUE(o.multicast);
  EXPECT_EQ(o.secret_file, "/secret");
  EXPECT_TRUE(o.trusted_fabric);
  EXPECT_FALSE(o.insecure_loopback);
}

TEST(cluster_environment, leaves_what_the_options_say) {
  const environment now(all_of_them);
  cluster_options o;
  o.node_name = "mine";
  o.listen = {"127.0.0.1:0"};
  o.certificate = "/n.pem";
  o = with_environment(o);
  EXPECT_EQ(o.cluster_name, "lab");
  EXPECT_EQ(o.node_name, "mine");
  EXPECT_EQ(o.listen, names{"127.0.0.1:0"});
  EXPECT_EQ(o.join, (names{"a:1", "b:2"}));
  EXPECT_EQ(o.secret_file, "") << "there is one kind of proof";
}

TEST(cluster_environment, is_not_looked_at_where_there_is_a_name_or_it_is_not_wanted) {
  const environment now(all_of_them);
  cluster_options named;
  named.cluster_name = "other";
  EXPECT_EQ(with_environment(named).join, names{});
  cluster_options alone;
  alone.from_environment = false;
  EXPECT_EQ(with_environment(alone).cluster_name, "");
}

}  // namespace
