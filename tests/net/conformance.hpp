// What this file is for: one suite for the seam of wires; the table of transports that take it, and its tools.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A transport joins with a `network` of its own and an entry in conformance.cpp. The tests are in
// conformance_*_test.cpp.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <troupe/error.hpp>

#include "net/transport.hpp"

namespace wires {

using namespace troupe::net;
using troupe::errc;
using troupe::error;
using bytes = std::vector<std::byte>;

/// The network that nodes of one kind meet on, new for each test.
class network {
 public:
  virtual ~network() = default;
  /// A transport that is not started. It adds to the options how members of this network prove themselves.
  virtual std::unique_ptr<transport> make(transport_options) = 0;
  /// Where a node listens that does not care where.
  virtual endpoint anywhere() = 0;
  /// Where nobody listens.
  virtual endpoint nowhere() = 0;
  /// Lets things happen until `done` says so; false if that does not come to pass. It is asked again after each event,
  /// and now and then.
  virtual bool until(const std::function<bool()>& done) = 0;
};

struct candidate {
  std::string name;
  std::function<std::unique_ptr<network>()> open;
  /// Bytes that a peer that reads nothing lets pile up elsewhere before `unsent` grows.
  std::size_t swallows_max = 16u << 20;
  /// All is told on the thread that waits, so that what is told cannot block and be looked at.
  bool one_thread = false;
};
void PrintTo(const candidate&, std::ostream*);
const std::vector<candidate>& candidates();

/// A process as the suite sees it: a transport, and a record of what it tells. The queries are for any thread.
class node final : private transport_events {
 public:
  enum class kind { up, frame, arriving, arrived, down, refused };
  struct event {
    kind what;
    const session* of = nullptr;
    node_id peer{};
    bytes content{};  ///< of a frame; the head of a transfer
    bool whole = false;
    std::exception_ptr why{};
    endpoint where{};
    std::thread::id thread{};
  };

  node(network&, transport_options);
  ~node();

  void start() { wire_->start(*this); }
  transport& wire() { return *wire_; }
  const identity& self() const { return self_; }
  endpoint address() const { return wire_->listening().at(0); }

  std::vector<event> events() const;
  std::vector<event> events(kind) const;
  std::size_t count(kind k) const;
  /// The session with that one which is up; null if there is none.
  std::shared_ptr<session> with(const node& other) const;
  std::shared_ptr<session> with_anyone() const;
  std::vector<bytes> frames() const;
  /// Returns what arrived under that head.
  bytes body(const std::string& head) const;

  // Options that a test may change before `start`.
  /// Where a transfer goes; by default memory of its own in one piece.
  std::function<pieces(session&, std::span<const std::byte> head, std::uint64_t)> destinations{};
  /// Called with each event, on its thread, after it has been recorded.
  std::function<void(const event&)> also{};

 private:
  void up(const std::shared_ptr<session>&) override;
  void frame(session&, std::span<const std::byte>) override;
  pieces arriving(session&, std::span<const std::byte>, std::uint64_t) override;
  void arrived(session&, std::span<const std::byte>, bool) override;
  void down(session&, std::exception_ptr) override;
  void refused(const endpoint&, std::exception_ptr) override;
  void record(event, const std::shared_ptr<session>& fresh = nullptr);

  identity self_;
  std::unique_ptr<transport> wire_;
  mutable std::mutex lock_;
  std::vector<event> events_;
  std::vector<std::shared_ptr<session>> sessions_;
  std::map<std::string, bytes> bodies_;
};

bytes as_bytes(const std::string&);
std::string as_text(std::span<const std::byte>);
/// So many bytes, the same for the same seed.
bytes noise(std::size_t, unsigned seed);
/// The code of a troupe::error, and its text.
errc code_of(const std::exception_ptr&);
/// Nothing, if it is no dial_error.
std::optional<dial_error::reason> reason_of(const std::exception_ptr&);
std::string text_of(const std::exception_ptr&);

class conformance : public ::testing::TestWithParam<candidate> {
 protected:
  void SetUp() override { network_ = GetParam().open(); }

  /// Options of a node by that name in the cluster "test", which listens.
  transport_options options(const std::string& name) const;
  /// Started.
  std::unique_ptr<node> begin(const std::string& name) { return begin(options(name)); }
  std::unique_ptr<node> begin(transport_options);
  /// `from` dials `to`, and there is a session on both sides.
  void join(node& from, node& to);
  bool until(const std::function<bool()>& done) { return network_->until(done); }

  std::unique_ptr<network> network_;
};

}  // namespace wires
