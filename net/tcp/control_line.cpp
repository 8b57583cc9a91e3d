// What this file is for: frames through a control connection.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// The thread that sends writes to the socket itself: handing the frame to the loop would cost a thread's wake-up. The
// loop takes over only when the socket is full.
#include "net/tcp/control_line.hpp"

#include <cstring>
#include <utility>

#include <troupe/error.hpp>

namespace troupe::net::tcp {

namespace {
/// Bytes that are read of one peer before others get their turn.
constexpr std::size_t turn_bytes = 1u << 20;
constexpr std::size_t out_keep_max = 1u << 20;
}  // namespace

control_line::control_line(loop& l, std::unique_ptr<stream> io, bounds b, std::string peer)
    : loop_(l), bounds_(b), peer_(std::move(peer)), in_(b.in_max), io_(std::move(io)) {}

control_line::~control_line() = default;

void control_line::owned_by(std::weak_ptr<void> owner, frame_told told, failure failed) {
  owner_ = std::move(owner);
  frame_ = std::move(told);
  failed_ = std::move(failed);
}

void control_line::begin() {
  {
    const std::lock_guard hold(lock_);
    if (!io_) return;
    watch_ = std::make_unique<watch>(loop_, io_->socket(), watch::traffic::often);
    if (waiting_) wait_to_write();
  }
  take_in();
}

bool control_line::send(std::span<const std::byte> frame) {
  if (frame.size() > bounds_.out_max) return false;
  std::exception_ptr why;
  {
    const std::lock_guard hold(lock_);
    if (muted_ || write_failed_) return false;
    const auto size = static_cast<std::uint32_t>(frame.size());
    const auto* head = reinterpret_cast<const std::byte*>(&size);
    out_.insert(out_.end(), head, head + sizeof size);
    out_.insert(out_.end(), frame.begin(), frame.end());
    if (!waiting_ && !flush()) return false;
    if (out_.size() - out_at_ > bounds_.unsent_max)
      why = broken_at("does not take what is sent to it: " + std::to_string(out_.size() - out_at_) +
                      " bytes of control wait, at most " + std::to_string(bounds_.unsent_max) + " may (unsent_max)");
    if (!why) return true;
    muted_ = true;
  }
  failed_(why);
  return false;
}

std::size_t control_line::unsent() const {
  const std::lock_guard hold(lock_);
  return out_.size() - out_at_;
}

void control_line::mute() {
  const std::lock_guard hold(lock_);
  muted_ = true;
}

void control_line::close() {
  watch_.reset();
  const std::lock_guard hold(lock_);
  muted_ = true;
  if (io_) io_->finish();
  io_.reset();
  out_ = {};
  out_at_ = 0;
}

bool control_line::flush() {
  while (out_at_ < out_.size()) {
    const moved m = io_->write(out_.data() + out_at_, out_.size() - out_at_);
    if (m.what == outcome::moved) {
      out_at_ += m.bytes;
      continue;
    }
    if (m.what != outcome::wants_write && m.what != outcome::wants_read) {
      write_failed(m.what);
      return false;
    }
    if (out_at_ > out_.size() / 2) {
      out_.erase(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(out_at_));
      out_at_ = 0;
    }
    if (!std::exchange(waiting_, true)) {
      loop_.post([this, owner = owner_] {
        if (const auto alive = owner.lock()) wait_to_write();
      });
    }
    return true;
  }
  out_.clear();
  out_at_ = 0;
  waiting_ = false;
  if (out_.capacity() > out_keep_max) out_.shrink_to_fit();
  return true;
}

void control_line::write_failed(outcome what) {
  write_failed_ = true;
  // The peer's last words before it left are still heard: its farewell may be among them.
  loop_.post([this, owner = owner_, why = broken(what)] {
    const auto alive = owner.lock();
    if (!alive) return;
    take_in();
    failed_(why);
  });
}

void control_line::wait_to_read() {
  if (!watch_) return;
  watch_->readable([this] { take_in(watch_->is_look() ? lock_policy::try_once : lock_policy::wait); });
}

void control_line::wait_to_write() {
  if (!watch_) return;
  watch_->writable([this] {
    const auto alive = owner_.lock();
    if (std::exchange(reading_wants_write_, false)) take_in();
    const std::lock_guard hold(lock_);
    if (muted_ || !waiting_) return;
    flush();
    if (waiting_) wait_to_write();
  });
}

void control_line::take_in(lock_policy how) {
  const auto alive = owner_.lock();
  if (!watch_ || !alive) return;
  try {
    read_some(how);
  } catch (...) {
    mute();
    failed_(std::current_exception());
  }
}

void control_line::read_some(lock_policy how) {
  for (std::size_t taken = 0; taken < turn_bytes;) {
    const std::span<std::byte> room = in_.room();
    moved m{};
    std::exception_ptr why;
    {
      // A look does not wait for a thread that sends: there will be another one.
      std::unique_lock hold(lock_, std::defer_lock);
      if (how == lock_policy::wait) hold.lock();
      if (!hold && !hold.try_lock()) return wait_to_read();
      if (muted_) return;
      m = io_->read(room.data(), room.size());
      if (m.what == outcome::ended || m.what == outcome::failed) why = broken(m.what);
    }
    if (why) std::rethrow_exception(why);
    if (m.what == outcome::wants_read) return wait_to_read();
    if (m.what == outcome::wants_write) {
      reading_wants_write_ = true;
      return wait_to_write();
    }
    watch_->found();
    in_.arrived(m.bytes);
    taken += m.bytes;
    while (const auto frame = in_.next()) {
      {
        const std::lock_guard hold(lock_);
        if (muted_) return;
      }
      frame_(*frame);
    }
  }
  loop_.post([this, owner = owner_] {
    if (const auto alive = owner.lock()) take_in();
  });
}

std::exception_ptr control_line::broken(outcome what) {
  return broken_at(what == outcome::ended ? "has closed the connection"
                                          : "cannot be reached any more: " + io_->failure());
}

std::exception_ptr control_line::broken_at(const std::string& what) const {
  return std::make_exception_ptr(error(errc::node_lost, peer_ + " " + what));
}

}  // namespace troupe::net::tcp
