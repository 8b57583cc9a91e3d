// What this file is for: what a peer may say over connections that break and are replaced, in any order.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/lasting.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "net/codec.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace troupe;

namespace {

std::array<std::byte, 64> body{};

/// Lets go of what it was given when it is told to, and of the rest when it ends.
class connection final : public net::session {
 public:
  const net::identity& peer() const override { return peer_; }
  bool dialled() const override { return true; }
  bool send(std::span<const std::byte>) override { return true; }
  void send_bulk(std::span<const std::byte> head, net::const_pieces, std::function<void(bool)> done) override {
    net::reader from(head.subspan(1));
    fuzz::must(seen_.insert(from.varint()).second);  // once over each connection
    sending_.push_back(std::move(done));
  }
  std::size_t frame_max() const override { return 1000; }
  std::size_t unsent() const override { return 0; }
  std::chrono::steady_clock::time_point heard() const override { return {}; }
  std::uint64_t bytes_sent() const override { return 0; }
  std::uint64_t bytes_received() const override { return 0; }
  void close(std::exception_ptr) override {}

  void let_go(bool sent) {
    if (sending_.empty()) return;
    const auto done = std::move(sending_.back());
    sending_.pop_back();
    done(sent);
  }
  void end() {
    while (!sending_.empty()) let_go(false);
  }

 private:
  net::identity peer_;
  std::set<std::uint64_t> seen_;
  std::vector<std::function<void(bool)>> sending_;
};

/// A receiver is told once of what it gives room for.
class receiver final : public net::lasting_events {
 public:
  void frame(std::span<const std::byte>) override {}
  net::pieces arriving(std::span<const std::byte> head, std::uint64_t bytes) override {
    if (bytes > room_.size() || (bytes != 0 && !head.empty() && head[0] == std::byte{0})) return {};
    ++open;
    return {std::span(room_).first(static_cast<std::size_t>(bytes))};
  }
  void arrived(std::span<const std::byte>, bool) override {
    fuzz::must(open > 0);
    --open;
  }
  int open = 0;

 private:
  std::array<std::byte, 64> room_{};
};

/// As transports call it: what is arriving is answered for, with the connection at the latest.
class talk {
 public:
  void step(unsigned what, std::span<const std::byte> said) {
    switch (what % 8) {
      case 0:
      case 1:
        if (!fuzz::decodes([&] { line_->take(*now_, said, here_); })) replace();
        break;
      case 2:
        arrive(said);
        break;
      case 3:
        if (!coming_.empty()) end_of(said.size() % coming_.size(), true);
        break;
      case 4:
        replace();
        break;
      case 5:
        line_->send(said);
        break;
      case 6:
        ++given_;
        line_->send_bulk({}, {std::span<const std::byte>(body)}, [this](bool) { ++done_; });
        break;
      default:
        now_->let_go(true);
    }
  }
  void end() {
    break_off();
    line_->end();
    fuzz::must(here_.open == 0 && done_ == given_);
  }

 private:
  void arrive(std::span<const std::byte> head) {
    const std::uint64_t bytes = head.size() % 5 * 16;
    coming_.emplace_back(head.begin(), head.end());
    if (!fuzz::decodes([&] { line_->arriving(*now_, head, bytes, here_); })) replace();
  }
  void end_of(std::size_t i, bool whole) {
    const std::vector<std::byte> head = coming_[i];
    coming_.erase(coming_.begin() + static_cast<std::ptrdiff_t>(i));
    fuzz::decodes([&] { line_->arrived(*now_, head, whole, here_); });
  }
  void break_off() {
    while (!coming_.empty()) end_of(0, false);
    fuzz::must(here_.open == 0);
    now_->end();
  }
  void replace() {
    break_off();
    before_.push_back(now_);  // addresses of connections are not used again here
    now_ = std::make_shared<connection>();
    line_->attach(now_);
  }

  std::shared_ptr<connection> now_ = std::make_shared<connection>();
  std::vector<std::shared_ptr<connection>> before_;
  std::shared_ptr<net::lasting_session> line_ = std::make_shared<net::lasting_session>(now_);
  receiver here_;
  std::vector<std::vector<std::byte>> coming_;
  int given_ = 0, done_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  talk t;
  std::span rest(reinterpret_cast<const std::byte*>(data), size);
  while (rest.size() >= 2) {
    const auto what = std::to_integer<unsigned>(rest[0]);
    const std::size_t n = std::min<std::size_t>(std::to_integer<unsigned>(rest[1]), rest.size() - 2);
    t.step(what, rest.subspan(2, n));
    rest = rest.subspan(2 + n);
  }
  t.end();
  return 0;
}
