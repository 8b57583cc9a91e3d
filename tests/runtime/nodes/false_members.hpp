// What this file is for: a false member, and a runtime that hears it, whose program is the test.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <vector>

#include <troupe/array_maker.hpp>
#include <troupe/submitter.hpp>

#include "false_member.hpp"
#include "imagined_kernels.hpp"
#include "tests/support/hashed_bodies.hpp"

namespace test {

/// A runtime, whose program is the test, and a false member.
class false_members : public testing::Test,
                      public troupe::array_maker<false_members>,
                      public troupe::submitter<false_members> {
 protected:
  false_members() : w(1) {
    w.start(0, 1);
    other.emplace(w);
    EXPECT_TRUE(until([&] { return other->is_member && nodes() == 1; }));
  }
  /// In its place; its memory is counted, so it is sent nothing that it has not asked for.
  void have_one_that_counts_memory() {
    other.reset();
    ASSERT_TRUE(until([&] { return nodes() == 0; }));
    other.emplace(w, false);
    ASSERT_TRUE(until([&] { return other->is_member && nodes() == 1; }));
  }
  bool until(const std::function<bool()>& f) { return w.network.run_until(f, 60s); }
  std::size_t nodes() const { return w.nodes[0]->the_engine().others()->report().size(); }
  template <class K, class... A>
  troupe::future<void> there(const K& kernel, const A&... all) {
    return spawn({.where = troupe::scope::at("false")}, kernel, all...);
  }
  /// Returns the tasks that it has been sent, one at a time.
  wire::task_descriptor next_task() {
    auto& frames = other->heard[wire::kind::tasks];
    for (;;) {
      EXPECT_TRUE(until([&] { return !frames.empty(); }));
      net::reader from(frames.at(0));
      const wire::tasks t = wire::take_tasks(from);
      frames.erase(frames.begin());
      if (t.all.empty()) continue;  // only names arrays
      EXPECT_EQ(t.all.size(), 1u);
      return t.all.at(0);
    }
  }
  /// The next number that it has been told in a request of that kind.
  std::uint64_t next_number(wire::kind what) {
    auto& frames = other->heard[what];
    EXPECT_TRUE(until([&] { return !frames.empty(); }));
    net::reader from(frames.front());
    const std::uint64_t number = wire::take_requests(from).at(0).number;
    frames.erase(frames.begin());
    return number;
  }
  void ended(std::uint64_t task, wire::outcome how) {
    net::writer f;
    f.varint(static_cast<std::uint64_t>(wire::kind::done));  // for `fixed` GCC 12 warns here of what is not so
    wire::put(f, wire::task_end{.id = task, .how = how, .text = "as it says"});
    other->say(f);
  }
  /// Asks for a box of a tile, under a number of its own.
  void fetch_in(std::uint64_t number, std::uint64_t array, const wire::gap& what) {
    net::writer f;
    f.varint(static_cast<std::uint64_t>(wire::kind::fetch_in));
    wire::put(f, wire::box_request{number, array, what});
    other->say(f);
  }
  void not_sent(std::uint64_t number) {
    net::writer f;
    f.fixed(wire::kind::not_sent);
    f.varint(number);
    f.varint(static_cast<std::uint64_t>(troupe::errc::out_of_memory));
    f.text("as it says");
    other->say(f);
  }
  /// Names an array of so many rows of three words, in tiles as large, and a task that runs the kernel on all of it.
  void give_task(std::uint64_t id, std::uint64_t kernel, troupe::index_t rows, bool with_array, bool asks,
                 std::vector<std::vector<std::byte>> values, std::uint64_t array = 1, std::uint64_t pushed = 0,
                 std::vector<troupe::resource> quantities = {}) {
    wire::tasks t;
    wire::array_descriptor a;
    a.id = array;
    a.rank = 2;
    a.size = a.tile = {rows, 3, 1, 1};
    a.element = a.align = sizeof(word);
    a.name = "theirs";
    if (with_array) t.arrays.push_back(a);
    wire::task_descriptor& c = t.all.emplace_back();
    c.id = id;
    c.kernel = kernel;
    c.values = std::move(values);
    c.resources = std::move(quantities);
    wire::access_descriptor& x = c.accesses.emplace_back();
    x.array = a.id;
    x.mode = troupe::access_mode::update;
    x.where.hi = x.limit.hi = a.size;
    if (asks) x.gaps.push_back({.where = x.where, .pushed = pushed});
    net::writer f;
    wire::put(f, t);
    other->say(f);
  }
  static std::vector<std::byte> one_word() { return std::vector<std::byte>(sizeof(word)); }

  imagined_world w;
  std::optional<false_member> other;

 public:
  troupe::detail::target submission_target() const { return {&w.nodes[0]->the_engine(), nullptr}; }
};

}  // namespace test
