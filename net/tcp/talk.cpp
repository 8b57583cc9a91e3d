// What this file is for: the steps of a connection that is not admitted yet.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/tcp/talk.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <system_error>
#include <utility>

#include <troupe/error.hpp>

#include "net/tcp/hello.hpp"

namespace troupe::net::tcp {

talk::talk(loop& l, std::unique_ptr<stream> io, address peer, std::string peer_text)
    : loop_(l),
      io_(std::move(io)),
      watch_(std::make_unique<watch>(l, io_->socket())),
      peer_(peer),
      peer_text_(std::move(peer_text)) {}

talk::~talk() = default;

void talk::begin(loop::time_point deadline, bool lingers, failure failed) {
  lingers_ = lingers;
  failed_ = std::move(failed);
  loop_.at(deadline, [weak = weak_from_this()] {
    if (const auto self = weak.lock(); self && self->io_) {
      self->fail(std::make_exception_ptr(
          error(errc::unreachable, self->peer_text_ + " does not answer in time: check what listens there")));
    }
  });
}

void talk::connected(next then) {
  next_ = std::move(then);
  watch_->writable([this] {
    const auto self = shared_from_this();
    if (const int code = connect_failure(io_->socket()); code != 0) {
      return fail(std::make_exception_ptr(cannot_connect(peer_text_, code)));
    }
    std::exchange(next_, nullptr)();
  });
}

void talk::handshake(next then) {
  next_ = std::move(then);
  try_handshake();
}

void talk::write(std::vector<std::byte> message, next then) {
  next_ = std::move(then);
  const auto size = static_cast<std::uint32_t>(message.size());
  message_.resize(sizeof size);
  std::memcpy(message_.data(), &size, sizeof size);
  message_.insert(message_.end(), message.begin(), message.end());
  at_ = 0;
  try_write();
}

void talk::read(heard then) {
  heard_ = std::move(then);
  message_.clear();
  at_ = wanted_ = 0;
  try_read();
}

void talk::linger() {
  io_->finish();
  try_drain();
}

std::unique_ptr<stream> talk::take() {
  watch_.reset();
  failed_ = nullptr;
  next_ = nullptr;
  heard_ = nullptr;
  return std::move(io_);
}

void talk::drop() { take(); }

void talk::try_handshake() {
  const auto self = shared_from_this();
  const moved m = io_->handshake();
  if (m.what == outcome::moved) {
    std::exchange(next_, nullptr)();
  } else if (m.what == outcome::failed && lingers_) {
    linger();  // the alert that says why is on its way
  } else if (!wait(m.what, &talk::try_handshake)) {
    fail("it ended the handshake (it may be busy, or no node of a cluster with the same kind of proof)");
  }
}

void talk::try_write() {
  const auto self = shared_from_this();
  while (at_ < message_.size()) {
    const moved m = io_->write(message_.data() + at_, message_.size() - at_);
    if (m.what != outcome::moved) {
      if (!wait(m.what, &talk::try_write)) fail("the connection broke");
      return;
    }
    at_ += m.bytes;
  }
  std::exchange(next_, nullptr)();
}

void talk::try_read() {
  const auto self = shared_from_this();
  for (;;) {
    const std::size_t until = wanted_ == 0 ? sizeof(std::uint32_t) : wanted_;
    if (at_ == until && wanted_ != 0) break;
    if (at_ == until) {
      std::uint32_t size = 0;
      std::memcpy(&size, message_.data(), sizeof size);
      // A talk that accepts says why not.
      if ((size == 0 || size > hello_max) && lingers_) return std::exchange(heard_, nullptr)({});
      if (size == 0 || size > hello_max)
        return fail(
            std::make_exception_ptr(error(errc::protocol_error, peer_text_ + " does not speak troupe's protocol")));
      wanted_ = size + sizeof size;
      continue;
    }
    // The bytes that have arrived decide how much memory is taken, not what was announced.
    message_.resize(std::min<std::size_t>(until, at_ + 1024));
    const moved m = io_->read(message_.data() + at_, message_.size() - at_);
    if (m.what != outcome::moved) {
      if (!wait(m.what, &talk::try_read)) fail("the connection was closed before it was admitted");
      return;
    }
    at_ += m.bytes;
  }
  const auto message = std::exchange(message_, {});
  std::exchange(heard_, nullptr)(std::span(message).subspan(sizeof(std::uint32_t)));
}

void talk::try_drain() {
  const auto self = shared_from_this();
  std::array<std::byte, 4096> nowhere;
  for (int i = 0; i < 16; ++i) {  // 64 KiB, then its patience is at an end
    const moved m = io_->drain(nowhere);
    if (m.what == outcome::moved) continue;
    if (!wait(m.what, &talk::try_drain)) fail("closed");
    return;
  }
  fail("closed");
}

bool talk::wait(outcome what, void (talk::*again)()) {
  auto call = [this, again] { (this->*again)(); };
  if (what == outcome::wants_read) {
    watch_->readable(call);
  } else if (what == outcome::wants_write) {
    watch_->writable(call);
  } else {
    return false;
  }
  return true;
}

void talk::fail(const std::string& what) {
  const std::string more = io_->failure().empty() ? "" : ": " + io_->failure();
  fail(std::make_exception_ptr(error(errc::refused, peer_text_ + ": " + what + more)));
}

void talk::fail(std::exception_ptr why) {
  const auto self = shared_from_this();
  const failure call = std::exchange(failed_, nullptr);
  drop();
  if (call) call(std::move(why));
}

}  // namespace troupe::net::tcp
