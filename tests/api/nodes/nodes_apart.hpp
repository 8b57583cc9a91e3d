// What this file is for: two nodes of one process, and a way between them that the test can cut.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include <troupe/troupe.hpp>

#include "several_nodes.hpp"
#include "tests/support/proxy.hpp"

namespace test {

/// "a", where the test spawns, and "b", which it reaches, and is reached by, through a proxy only.
class nodes_apart {
 public:
  /// `more`: what "a" is started with besides.
  explicit nodes_apart(const std::function<void(troupe::options&)>& more = {}) : a(announcing(more)) { join(); }
  /// After `part`: another "b", over another way.
  void meet() {
    b_.reset();
    way = std::make_unique<support::proxy>();
    join();
  }
  /// Ends the way between the two nodes.
  void part() { way.reset(); }
  troupe::runtime& b() { return *b_; }

  std::unique_ptr<support::proxy> way = std::make_unique<support::proxy>();
  troupe::runtime a;

 private:
  troupe::options announcing(const std::function<void(troupe::options&)>& more) const {
    troupe::options o = node_options("a");
    o.cluster.announce = {way->address()};
    if (more) more(o);
    return o;
  }
  void join() {
    way->forward_to(a.addresses().front());
    troupe::options o = node_options("b", {way->address()});
    o.cluster.listen.clear();
    b_ = std::make_unique<troupe::runtime>(o);
    EXPECT_TRUE(a.wait_for_nodes(1, 20s));
  }

  std::unique_ptr<troupe::runtime> b_;
};

}  // namespace test
