// What this file is for: numbers, receipts, and sending again.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/lasting.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <troupe/error.hpp>

#include "net/codec.hpp"

namespace troupe::net {

namespace {

enum class kind : std::uint8_t {
  numbered = 0x30,  ///< number, number of the last frame that the sender has, the frame
  receipt = 0x31,   ///< number of the last frame that the sender has
  whole = 0x32,     ///< number of a transfer of which the sender has all
  parcel = 0x33,    ///< in heads of transfers: number, the head
  again = 0x34,     ///< after a new connection: number of the frame that the sender expects next
};

// Before a frame stand a kind and two numbers.
constexpr std::size_t numbered_bytes = 1 + 2 * 10;
// The peer is told what has arrived at the latest after so many bytes or frames.
constexpr std::size_t receipt_bytes = 256u << 10;
constexpr std::uint64_t receipt_frames = 64;
// More than that is not kept for a peer that does not say what it has.
constexpr std::size_t kept_bytes_max = 256u << 20;

[[noreturn]] void refuse(const char* what) { throw error(errc::protocol_error, what); }

template <class Pieces>
std::uint64_t size_of(const Pieces& body) {
  std::uint64_t bytes = 0;
  for (const auto& piece : body) bytes += piece.size();
  return bytes;
}

}  // namespace

lasting_session::lasting_session(std::shared_ptr<session> first, clock c)
    : peer_(first->peer()),
      frame_max_(first->frame_max() - std::min(first->frame_max(), numbered_bytes)),
      clock_(std::move(c)),
      now_(std::move(first)) {}

// ---- sending --------------------------------------------------------------------------------------------------------

bool lasting_session::send(std::span<const std::byte> frame) {
  std::shared_ptr<session> too_slow;
  {
    std::lock_guard hold(lock_);
    if (ended_ || frame.size() > frame_max_) return false;
    const std::uint64_t number = first_ + kept_.size();
    kept_.emplace_back(frame.begin(), frame.end());
    kept_bytes_ += frame.size();
    if (kept_bytes_ > kept_bytes_max) too_slow = now_;
    if (now_ && in_step_) send_kept(number, kept_.back());
  }
  if (too_slow)
    too_slow->close(std::make_exception_ptr(error(errc::node_lost, "the peer does not take what it is sent")));
  return true;
}

void lasting_session::send_kept(std::uint64_t number, std::span<const std::byte> frame) {
  writer w;
  w.fixed(kind::numbered);
  w.varint(number);
  w.varint(expected_ - 1);
  w.raw(frame.data(), frame.size());
  now_->send(w.view());  // if that fails the connection is ending, and another one brings it
  told_ = expected_ - 1;
  taken_bytes_ = 0;
}

void lasting_session::send_bulk(std::span<const std::byte> head, const_pieces body, std::function<void(bool)> done) {
  std::uint64_t number = 0;
  const std::uint64_t bytes = size_of(body);
  const auto now = clock_();
  {
    std::lock_guard hold(lock_);
    if (!ended_) {
      number = next_parcel_++;
      parcels_.emplace(number, parcel{{head.begin(), head.end()}, std::move(body), std::move(done), bytes});
      out_.begin(bytes, now);
    }
  }
  if (number == 0)
    done(false);
  else
    start(number);
}

void lasting_session::start(std::uint64_t number) {
  std::shared_ptr<session> over;
  writer head;
  const_pieces body;
  {
    std::lock_guard hold(lock_);
    const auto p = parcels_.find(number);
    if (p == parcels_.end() || !now_ || !in_step_) return;
    // The thread that hands the parcel over and the one that follows a new connection may both come here: twice, and
    // the peer would write it twice to one place.
    if (std::exchange(p->second.over, connections_) == connections_) return;
    over = now_;
    head.fixed(kind::parcel);
    head.varint(number);
    head.raw(p->second.head.data(), p->second.head.size());
    body = p->second.body;
    ++p->second.under_way;
  }
  // The parcel is there once the peer says so.
  over->send_bulk(head.view(), std::move(body), [self = shared_from_this(), number](bool) { self->let_go(number); });
}

// The memory is not read any more.
void lasting_session::let_go(std::uint64_t number) {
  std::function<void(bool)> done;
  {
    std::lock_guard hold(lock_);
    const auto p = parcels_.find(number);
    if (p == parcels_.end() || --p->second.under_way != 0) return;
    if (!ended_ && !p->second.whole) return;
    done = [ok = p->second.whole, f = std::move(p->second.done)](bool) { f(ok); };
    parcels_.erase(p);
  }
  done(true);
}

// ---- receiving ------------------------------------------------------------------------------------------------------

void lasting_session::take(session& over, std::span<const std::byte> frame, lasting_events& to) {
  reader from(frame);
  const auto what = from.fixed<kind>();
  const auto now = what == kind::whole ? clock_() : transfer_rate::time_point();
  std::unique_lock hold(lock_);
  if (!is_current(over)) return;
  switch (what) {
    case kind::numbered: {
      const std::uint64_t number = from.varint();
      forget_until(from.varint());
      if (number < expected_) return;  // again
      if (number > expected_) refuse("a frame is missing");
      ++expected_;
      taken_bytes_ += frame.size();
      hold.unlock();
      to.frame(from.raw(from.left()));
      hold.lock();
      if (is_current(over) && (expected_ - 1 - told_ >= receipt_frames || taken_bytes_ >= receipt_bytes)) acknowledge();
      return;
    }
    case kind::receipt:
      forget_until(from.varint());
      from.end();
      return;
    case kind::whole: {
      const std::uint64_t number = from.varint();
      from.end();
      std::function<void(bool)> done;
      if (const auto p = parcels_.find(number); p != parcels_.end()) {
        if (!std::exchange(p->second.whole, true)) out_.end(p->second.bytes, true, now);
        if (p->second.under_way == 0) {
          done = std::move(p->second.done);
          parcels_.erase(p);
        }
      }
      hold.unlock();
      if (done) done(true);
      return;
    }
    case kind::again: {
      const std::uint64_t next = from.varint();
      from.end();
      if (next < first_ || next > first_ + kept_.size()) refuse("frames were asked for that are not kept");
      forget_until(next - 1);
      in_step_ = true;
      for (std::size_t i = 0; i < kept_.size(); ++i) send_kept(first_ + i, kept_[i]);
      std::vector<std::uint64_t> again;
      for (const auto& [number, p] : parcels_)
        if (!p.whole) again.push_back(number);
      hold.unlock();
      for (const std::uint64_t number : again) start(number);
      return;
    }
    default:
      refuse("a frame of an unknown kind");
  }
}

void lasting_session::forget_until(std::uint64_t number) {
  if (number >= first_ + kept_.size()) refuse("a receipt for what was not sent");
  for (; first_ <= number; ++first_) {
    kept_bytes_ -= kept_.front().size();
    kept_.pop_front();
  }
}

void lasting_session::acknowledge() {
  writer w;
  w.fixed(kind::receipt);
  w.varint(expected_ - 1);
  now_->send(w.view());
  told_ = expected_ - 1;
  taken_bytes_ = 0;
}

pieces lasting_session::arriving(session& over, std::span<const std::byte> head, std::uint64_t bytes,
                                 lasting_events& to) {
  reader from(head);
  if (from.fixed<kind>() != kind::parcel) refuse("a transfer of an unknown kind");
  const std::uint64_t number = from.varint();
  {
    std::lock_guard hold(lock_);
    if (!is_current(over)) return {};
    if (number <= whole_until_ || whole_.contains(number)) {  // the answer was lost with the last connection
      confirm(over, number);
      return {};
    }
    if (const auto c = coming_.find({&over, number}); c != coming_.end()) {
      ++c->second.begun;
      return {};
    }
  }
  pieces where = to.arriving(from.raw(from.left()), bytes);
  if (size_of(where) != bytes) return {};  // it is thrown away
  const auto now = clock_();
  std::lock_guard hold(lock_);
  coming_.emplace(std::pair(&over, number), arrival{bytes});
  in_.begin(bytes, now);
  return where;
}

void lasting_session::arrived(session& over, std::span<const std::byte> head, bool whole, lasting_events& to) {
  reader from(head);
  if (from.fixed<kind>() != kind::parcel) {
    if (!whole) return;  // as was said when it began
    refuse("a transfer of an unknown kind");
  }
  const std::uint64_t number = from.varint();
  const auto now = clock_();
  bool is_told = false;
  {
    std::lock_guard hold(lock_);
    if (const auto c = coming_.find({&over, number}); c != coming_.end()) {
      arrival& a = c->second;
      whole = a.whole = a.whole && whole;
      if (--a.begun != 0) return;
      in_.end(a.bytes, whole, now);
      coming_.erase(c);
      is_told = true;
    }
    if (whole && number > whole_until_) whole_.insert(number);
    while (!whole_.empty() && *whole_.begin() == whole_until_ + 1) {
      ++whole_until_;
      whole_.erase(whole_.begin());
    }
  }
  if (is_told) to.arrived(from.raw(from.left()), whole);
  if (whole) confirm(over, number);  // else it is sent again
}

void lasting_session::confirm(session& over, std::uint64_t number) {
  writer w;
  w.fixed(kind::whole);
  w.varint(number);
  over.send(w.view());
}

// ---- connections ----------------------------------------------------------------------------------------------------

// Nothing else is sent before the peer has said what it expects: until then it may not know this connection.
void lasting_session::attach(std::shared_ptr<session> next) {
  std::lock_guard hold(lock_);
  if (ended_) return;
  if (now_) {
    sent_before_ += now_->bytes_sent();
    received_before_ += now_->bytes_received();
    fabric_sent_before_ += now_->fabric_sent();
    fabric_received_before_ += now_->fabric_received();
    ++resets_;
  }
  ++connections_;
  now_ = std::move(next);
  in_step_ = false;
  writer w;
  w.fixed(kind::again);
  w.varint(expected_);
  now_->send(w.view());
  told_ = expected_ - 1;
  taken_bytes_ = 0;
}

void lasting_session::end() {
  std::map<std::uint64_t, parcel> left;
  {
    std::lock_guard hold(lock_);
    ended_ = true;
    now_.reset();
    for (auto p = parcels_.begin(); p != parcels_.end();)
      if (p->second.under_way == 0)
        left.insert(parcels_.extract(p++));
      else
        ++p;  // the connection lets go of it when it ends
    kept_.clear();
    kept_bytes_ = 0;
  }
  for (auto& [number, p] : left) p.done(false);
}

std::size_t lasting_session::unsent() const {
  std::lock_guard hold(lock_);
  return kept_bytes_;
}

std::chrono::steady_clock::time_point lasting_session::heard() const {
  std::lock_guard hold(lock_);
  return now_ ? now_->heard() : std::chrono::steady_clock::time_point{};
}

std::uint64_t lasting_session::bytes_sent() const {
  std::lock_guard hold(lock_);
  return sent_before_ + (now_ ? now_->bytes_sent() : 0);
}

std::uint64_t lasting_session::bytes_received() const {
  std::lock_guard hold(lock_);
  return received_before_ + (now_ ? now_->bytes_received() : 0);
}

std::uint64_t lasting_session::fabric_sent() const {
  std::lock_guard hold(lock_);
  return fabric_sent_before_ + (now_ ? now_->fabric_sent() : 0);
}

std::uint64_t lasting_session::fabric_received() const {
  std::lock_guard hold(lock_);
  return fabric_received_before_ + (now_ ? now_->fabric_received() : 0);
}

std::uint64_t lasting_session::resets() const {
  std::lock_guard hold(lock_);
  return resets_;
}

double lasting_session::rate_out() const {
  std::lock_guard hold(lock_);
  return out_.bytes_per_second();
}

double lasting_session::rate_in() const {
  std::lock_guard hold(lock_);
  return in_.bytes_per_second();
}

void lasting_session::close(std::exception_ptr why) {
  std::shared_ptr<session> s;
  {
    std::lock_guard hold(lock_);
    s = now_;
  }
  if (s) s->close(std::move(why));
}

}  // namespace troupe::net
