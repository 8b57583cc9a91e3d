// What this file is for: a member that says what a test wants it to say, and a runtime that hears it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <troupe/detail/make.hpp>
#include <troupe/detail/submit.hpp>

#include "actors/cluster.hpp"
#include "actors/node_messages.hpp"
#include "actors/offers.hpp"
#include "imagined_kernels.hpp"
#include "imagined_world.hpp"
#include "net/lasting.hpp"
#include "tests/support/hashed_bodies.hpp"

namespace test {

using namespace std::chrono_literals;
namespace net = troupe::net;
namespace wire = troupe::detail::wire;
using troupe::detail::node_id;

/// A process that is admitted and says what the test wants it to say. It asks for nothing by itself.
class false_member final : private troupe::cluster_events, private net::lasting_events {
 public:
  /// `lends`: its memory is not counted, or so it says.
  explicit false_member(imagined_world& w, bool lends = true, std::size_t frame_max = 16u << 20)
      : world_(w), lends_(lends) {
    net::transport_options t;
    t.self.id.bytes.fill(0xee);
    t.self.incarnation = 1;
    t.self.name = "false";
    t.self.cluster = "imagined";
    t.self.listens_on = t.listen = {imagined_world::endpoint_of(99)};
    t.insecure_loopback = true;
    t.chunk_bytes = 256;
    t.frame_max = frame_max;
    const net::identity self = t.self;
    id_ = self.id;
    transport_ = w.network.attach(std::move(t));
    troupe::cluster_events& events = *this;
    cluster_ = std::make_unique<troupe::cluster>(*transport_, self, troupe::logic::membership_options{}, events);
    cluster_->start();
    cluster_->add_candidates({imagined_world::endpoint_of(0)});
    // What it sends in bulk takes its time: a byte a microsecond.
    w.network.set_link(self.id, w.nodes[0]->id(), {.bytes_per_s = 1'000'000});
  }
  ~false_member() { transport_->stop(); }

  void say(const net::writer& frame) { line_->send(frame.view()); }
  void say(wire::kind what, std::uint64_t number) {
    net::writer w;
    w.fixed(what);
    w.varint(number);
    say(w);
  }
  /// The body stays as long as this.
  void send(wire::kind what, const std::vector<std::uint64_t>& numbers, std::size_t bytes) {
    net::writer head;
    head.fixed(what);
    for (const std::uint64_t n : numbers) head.varint(n);
    body_.resize(std::max(body_.size(), bytes), std::byte{1});
    line_->send_bulk(head.view(), {std::span(body_).first(bytes)}, [](bool) {});
  }

  const net::node_id& id() const { return id_; }

  bool is_member = false;
  int losses = 0;
  std::map<wire::kind, std::vector<std::vector<std::byte>>> heard;  // frames, without their kinds
  struct body {
    wire::kind what;
    std::uint64_t number;
    std::vector<std::byte> bytes;
    bool whole = false;
  };
  std::deque<body> bodies;  // that it is sent

 private:
  void joined(const node_id&, const std::shared_ptr<net::session>& s) override {
    line_ = std::make_shared<net::lasting_session>(s, [this] { return transport_->now(); });
    is_member = true;
    net::writer w;
    wire::put(w, wire::card{1, 0, lends_, {}, troupe::detail::offered_keys()});
    say(w);
  }
  void resumed(const node_id&, const std::shared_ptr<net::session>& s) override { line_->attach(s); }
  void suspected(const node_id&) override {}
  void refuted(const node_id&) override {}
  void lost(const node_id&, troupe::logic::node_end) override {
    is_member = false;
    ++losses;
    line_->end();
  }
  void frame(net::session& s, std::span<const std::byte> f) override { line_->take(s, f, *this); }
  net::pieces arriving(net::session& s, std::span<const std::byte> head, std::uint64_t bytes) override {
    return line_->arriving(s, head, bytes, *this);
  }
  void arrived(net::session& s, std::span<const std::byte> head, bool whole) override {
    line_->arrived(s, head, whole, *this);
  }
  void frame(std::span<const std::byte> f) override { heard[wire::kind_of(f)].emplace_back(f.begin() + 1, f.end()); }
  net::pieces arriving(std::span<const std::byte> head, std::uint64_t bytes) override {
    net::reader from(head.subspan(1));
    bodies.push_back({wire::kind_of(head), from.varint(), std::vector<std::byte>(bytes)});
    return {std::span(bodies.back().bytes)};
  }
  void arrived(std::span<const std::byte> head, bool whole) override {
    net::reader from(head.subspan(1));
    const std::uint64_t number = from.varint();
    for (body& b : bodies)
      if (b.what == wire::kind_of(head) && b.number == number) b.whole = whole;
  }

  imagined_world& world_;
  const bool lends_;
  net::node_id id_{};
  std::unique_ptr<net::transport> transport_;
  std::unique_ptr<troupe::cluster> cluster_;
  std::shared_ptr<net::lasting_session> line_;
  std::vector<std::byte> body_ = std::vector<std::byte>(1u << 20, std::byte{1});
};

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
  std::size_t nodes() const { return w.nodes[0]->house().others()->report().size(); }
  template <class K, class... A>
  troupe::future<void> there(const K& kernel, const A&... all) {
    return spawn({.where = troupe::scope::at("false")}, kernel, all...);
  }
  /// What it has been sent to do, one at a time.
  wire::task_card next_task() {
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
  /// It asks for a box of a tile, under a number of its own.
  void want(std::uint64_t number, std::uint64_t array, const wire::gap& what) {
    net::writer f;
    f.varint(static_cast<std::uint64_t>(wire::kind::want));
    wire::put(f, wire::box_request{number, array, what});
    other->say(f);
  }
  void cannot(std::uint64_t number) {
    net::writer f;
    f.fixed(wire::kind::cannot);
    f.varint(number);
    f.varint(static_cast<std::uint64_t>(troupe::errc::out_of_memory));
    f.text("as it says");
    other->say(f);
  }
  /// It names an array of so many rows of three words, in tiles as large, and a task that runs the kernel on all of it.
  void give_task(std::uint64_t id, std::uint64_t kernel, troupe::index_t rows, bool with_array, bool asks,
                 std::vector<std::vector<std::byte>> values, std::uint64_t array = 1, std::uint64_t pushed = 0,
                 std::vector<troupe::resource> quantities = {}) {
    wire::tasks t;
    wire::array_card a;
    a.id = array;
    a.rank = 2;
    a.size = a.tile = {rows, 3, 1, 1};
    a.element = a.align = sizeof(word);
    a.name = "theirs";
    if (with_array) t.arrays.push_back(a);
    wire::task_card& c = t.all.emplace_back();
    c.id = id;
    c.kernel = kernel;
    c.values = std::move(values);
    c.resources = std::move(quantities);
    wire::access_card& x = c.accesses.emplace_back();
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
  troupe::detail::target submission_target() const { return {&w.nodes[0]->house(), nullptr}; }
};

}  // namespace test
