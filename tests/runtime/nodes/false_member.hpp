// What this file is for: a member that says what a test wants it to say.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/cluster/cluster.hpp"
#include "actors/wire/kernel_registry.hpp"
#include "actors/wire/task_messages.hpp"
#include "imagined_world.hpp"
#include "net/lasting.hpp"

namespace test {

using namespace std::chrono_literals;
namespace net = troupe::net;
namespace wire = troupe::detail::wire;
using troupe::detail::node_id;

/// A process that is admitted and says what the test wants it to say. It asks for nothing by itself.
class false_member final : private troupe::detail::cluster_events, private net::lasting_events {
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
    troupe::detail::cluster_events& events = *this;
    cluster_ =
        std::make_unique<troupe::detail::cluster>(*transport_, self, troupe::logic::membership_options{}, events);
    cluster_->start();
    cluster_->add_candidates({imagined_world::endpoint_of(0)});
    // Transfers of the false member take their time: a byte a microsecond.
    w.network.set_link(self.id, w.nodes[0]->id(), {.bytes_per_s = 1'000'000});
  }
  ~false_member() { transport_->stop(); }

  void say(const net::writer& frame) { line_->send(frame.view()); }
  void say(std::span<const std::byte> frame) { line_->send(frame); }
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
    send(head.view(), bytes);
  }
  /// Sends a transfer of at most a MiB.
  void send(std::span<const std::byte> head, std::size_t bytes) {
    line_->send_bulk(head, {std::span(body_).first(bytes)}, [](bool) {});
  }
  /// Below what is numbered and kept.
  void say_raw(std::span<const std::byte> frame) {
    if (over_) over_->send(frame);
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
    over_ = s;
    is_member = true;
    net::writer w;
    wire::put(w, wire::node_descriptor{1, 0, lends_, {}, troupe::detail::offered_keys()});
    say(w);
  }
  void resumed(const node_id&, const std::shared_ptr<net::session>& s) override {
    over_ = s;
    line_->attach(s);
  }
  void suspected(const node_id&) override {}
  void refuted(const node_id&) override {}
  void lost(const node_id&, troupe::logic::node_end) override {
    is_member = false;
    ++losses;
    over_.reset();
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
  std::unique_ptr<troupe::detail::cluster> cluster_;
  std::shared_ptr<net::lasting_session> line_;
  std::shared_ptr<net::session> over_;
  std::vector<std::byte> body_ = std::vector<std::byte>(1u << 20, std::byte{1});
};

}  // namespace test
