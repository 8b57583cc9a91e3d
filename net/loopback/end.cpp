// What this file is for: one end of a session over a loopback network.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstring>

#include "net/loopback/process.hpp"

namespace troupe::net::loopback {

namespace {

constexpr std::size_t head_max = 4096;
constexpr std::size_t overhead = 26;  // what a frame's length and TLS add

std::size_t bytes_of(const pieces& all) {
  std::size_t n = 0;
  for (const auto& p : all) n += p.size();
  return n;
}

}  // namespace

void end::count(std::size_t bytes, bool is_sent) {
  if (is_sent) {
    sent_ += bytes;
    owner_.bytes_sent += bytes;
    ++owner_.frames_sent;
  } else {
    received_ += bytes;
    heard_ = network_.now;
  }
}

void end::open() {
  open_ = told_up_ = true;
  heard_ = network_.now;
  owner_.sessions[peer_.id] = shared_from_this();
  network_.tell([&] { owner_.events->up(shared_from_this()); });
}

// ---- control --------------------------------------------------------------------------------------------------------

bool end::send(std::span<const std::byte> frame) {
  const std::lock_guard hold(network_.lock);
  if (!open_ || frame.size() > frame_max()) return false;
  const std::size_t bytes = frame.size() + overhead;
  count(bytes, true);
  network_.carry(control, owner_, other_, bytes,
                 [to = far(), frame = std::vector<std::byte>(frame.begin(), frame.end())] {
                   if (to) to->received(frame);
                 });
  if (unsent() <= owner_.options.unsent_max) return true;
  finish(std::make_exception_ptr(
             error(errc::node_lost, "the peer does not take what is sent to it: more than unsent_max waits")),
         true);
  return false;
}

std::size_t end::frame_max() const { return std::min(owner_.options.frame_max, other_.options.frame_max); }

std::size_t end::unsent() const {
  const std::lock_guard hold(network_.lock);
  std::size_t waiting = control.held_bytes;
  const link& l = network_.link_of(owner_, other_);
  if (l.bytes_per_s && control.free > network_.now)
    waiting += static_cast<std::size_t>(std::chrono::duration<double>(control.free - network_.now).count() *
                                        static_cast<double>(l.bytes_per_s));
  return waiting;
}

void end::received(const std::vector<std::byte>& frame) {
  if (!open_) return;
  count(frame.size() + overhead, false);
  network_.tell([&] { owner_.events->frame(*this, frame); });
}

// ---- bulk -----------------------------------------------------------------------------------------------------------

void end::send_bulk(std::span<const std::byte> head, const_pieces body, std::function<void(bool)> done) {
  if (head.size() > head_max) throw error(errc::bad_argument, "the head of a transfer may have 4096 bytes; send less");
  std::unique_lock hold(network_.lock);
  if (!open_) {
    hold.unlock();
    return done(false);
  }
  std::uint64_t bytes = 0;
  for (const auto& p : body) bytes += p.size();
  leaving_.push_back({++transfers_, {head.begin(), head.end()}, std::move(body), 0, 0, bytes, std::move(done), true});
  pump();
}

/// Sends chunks, of which one is on its way at a time; the transfers take turns.
void end::pump() {
  if (pumping_ || leaving_.empty() || !open_ || !bulk.held.empty()) return;
  pumping_ = true;
  leaving t = std::move(leaving_.front());
  leaving_.pop_front();
  auto c = std::make_shared<chunk>();
  c->id = t.id;
  c->total = t.left;
  c->first = std::exchange(t.first, false);
  if (c->first) c->head = t.head;
  while (t.left > 0 && c->bytes.size() < owner_.options.chunk_bytes) {
    const auto& p = t.body[t.piece];
    const std::size_t n = std::min(p.size() - t.offset, owner_.options.chunk_bytes - c->bytes.size());
    c->bytes.insert(c->bytes.end(), p.begin() + static_cast<std::ptrdiff_t>(t.offset),
                    p.begin() + static_cast<std::ptrdiff_t>(t.offset + n));
    t.left -= n;
    t.offset += n;
    if (t.offset == p.size()) {
      ++t.piece;
      t.offset = 0;
    }
  }
  c->last = t.left == 0;
  const std::size_t bytes = c->bytes.size() + c->head.size() + overhead;
  count(bytes, true);
  const time_point left = network_.carry(bulk, owner_, other_, bytes, [to = far(), c] {
    if (to) to->received(*c);
  });
  leaving_.push_back(std::move(t));  // the last of all, until it has left
  network_.post(left, &owner_, [self = shared_from_this(), id = c->id, last = c->last] {
    self->pumping_ = false;
    if (!self->open_) return;
    if (last) {
      const auto x =
          std::find_if(self->leaving_.begin(), self->leaving_.end(), [&](const auto& l) { return l.id == id; });
      auto done = std::move(x->done);
      self->leaving_.erase(x);
      self->network_.tell([done = std::move(done)] { done(true); });
    }
    self->pump();
  });
}

void end::received(const chunk& c) {
  if (!open_) return;
  count(c.bytes.size() + c.head.size() + overhead, false);
  if (c.first) {
    coming made{c.head, network_.tell([&] { return owner_.events->arriving(*this, c.head, c.total); }), 0, 0, false};
    made.wanted = bytes_of(made.body) == c.total;
    if (!open_) {  // by what it was told
      network_.tell([&] { owner_.events->arrived(*this, made.head, false); });
      return;
    }
    coming_[c.id] = std::move(made);
  }
  const auto found = coming_.find(c.id);
  if (found == coming_.end()) return;
  coming& t = found->second;
  if (t.wanted) {
    for (std::size_t at = 0; at < c.bytes.size();) {
      const auto& p = t.body[t.piece];
      const std::size_t n = std::min(p.size() - t.offset, c.bytes.size() - at);
      if (n) std::memcpy(p.data() + t.offset, c.bytes.data() + at, n);
      at += n;
      t.offset += n;
      if (t.offset == p.size()) {
        ++t.piece;
        t.offset = 0;
      }
    }
  }
  if (!c.last) return;
  const coming whole = std::move(t);
  coming_.erase(found);
  network_.tell([&] { owner_.events->arrived(*this, whole.head, true); });
}

// ---- the end --------------------------------------------------------------------------------------------------------

void end::close(std::exception_ptr why) {
  const std::lock_guard hold(network_.lock);
  finish(std::move(why), false);
}

void end::finish(std::exception_ptr why, bool reset) {
  if (std::exchange(ended_, true)) return;
  open_ = false;
  why_ = std::move(why);
  const auto mine = owner_.sessions.find(peer_.id);
  if (mine != owner_.sessions.end() && mine->second.get() == this) owner_.sessions.erase(mine);
  auto goodbye = [self = shared_from_this(), reset] {  // with this end, whose wire it may have to wait on
    if (const auto to = self->far()) to->far_has_finished(reset);
  };
  if (!reset || network_.is_cut(owner_, other_))
    network_.carry(control, owner_, other_, overhead, std::move(goodbye));
  else
    network_.post(network_.now + network_.delay(owner_, other_), &other_, std::move(goodbye));
  owner_.ending.push_back(shared_from_this());
  network_.post(network_.now, &owner_, [self = shared_from_this()] { self->tell_end(); });
}

void end::tell_end() {
  if (std::exchange(end_told_, true)) return;
  const auto self = shared_from_this();
  std::erase(owner_.ending, self);
  network_.tell([&, leaving = std::exchange(leaving_, {}), coming = std::exchange(coming_, {})] {
    for (const auto& t : leaving) t.done(false);
    for (const auto& [id, t] : coming) owner_.events->arrived(*this, t.head, false);
    if (told_up_) owner_.events->down(*this, why_);
  });
}

void end::let_go() {
  end_told_ = true;
  coming_.clear();
  network_.tell([leaving = std::exchange(leaving_, {})] {
    for (const auto& t : leaving) t.done(false);
  });
}

void end::far_has_finished(bool reset) {
  finish(std::make_exception_ptr(
             error(errc::node_lost, reset ? "the connection was reset" : "the peer has closed the connection")),
         true);
}

}  // namespace troupe::net::loopback
