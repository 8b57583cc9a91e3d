// What this file is for: begins and ends the two lines of a session together.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/tcp/session.hpp"

#include <algorithm>
#include <utility>

#include <troupe/error.hpp>

namespace troupe::net::tcp {

namespace {

std::string named(const tcp_session::terms& t) {
  return "node " + (t.peer.name.empty() ? t.peer.id.text().substr(0, 8) : t.peer.name) + " (" + t.remote.text() + ")";
}

std::unique_ptr<stream> admitted(std::unique_ptr<stream> s, const std::shared_ptr<meter>& counts) {
  s->count_in(counts);
  s->trust();
  return s;
}

}  // namespace

std::shared_ptr<tcp_session> tcp_session::make(loop& control, loop& bulk, fabric_drive* fabric, terms t, streams s,
                                               transport_events& events, ended_told ended) {
  const std::shared_ptr<tcp_session> made(
      new tcp_session(control, bulk, fabric, std::move(t), std::move(s), events, std::move(ended)));
  // The lines belong to the session, so what they call may hold it by address.
  made->control_line_.owned_by(
      made, [self = made.get()](std::span<const std::byte> f) { self->events_.frame(*self, f); },
      [self = made.get()](std::exception_ptr why) { self->end(std::move(why)); });
  made->bulk_line_.owned_by(made);
  return made;
}

tcp_session::tcp_session(loop& control, loop& bulk, fabric_drive* fabric, terms t, streams s, transport_events& events,
                         ended_told ended)
    : control_(control),
      bulk_(bulk),
      terms_(std::move(t)),
      events_(events),
      ended_(std::move(ended)),
      control_line_(control, admitted(std::move(s.control), meter_),
                    {frame_max(), terms_.takes.frame_max, terms_.unsent_max}, named(terms_)),
      bulk_line_(bulk, admitted(std::move(s.bulk), meter_),
                 std::min(terms_.takes.chunk_bytes, terms_.peer_takes.chunk_bytes), terms_.takes.chunk_bytes,
                 named(terms_), std::make_unique<fabric_line>(fabric, terms_.peer.id, named(terms_), meter_)) {}

void tcp_session::begin() {
  bulk_.post([self = shared_from_this()] {
    self->bulk_line_.begin(
        [s = self.get()](std::span<const std::byte> head, std::uint64_t bytes) {
          return s->events_.arriving(*s, head, bytes);
        },
        [s = self.get()](std::span<const std::byte> head, bool whole) { s->events_.arrived(*s, head, whole); },
        [s = self.get()](std::exception_ptr why) {
          // Control was closed first: what was said there before is still to be heard.
          s->control_.post([still = s->shared_from_this(), why] {
            still->control_line_.hear_out();
            still->end(why);
          });
        });
  });
  control_line_.begin();
}

void tcp_session::send_bulk(std::span<const std::byte> head, const_pieces body, std::function<void(bool)> done) {
  if (head.size() > head_max)
    throw error(errc::bad_argument, "the head of a transfer has " + std::to_string(head.size()) + " bytes, at most " +
                                        std::to_string(head_max) + " are allowed");
  bulk_line_.send({{head.begin(), head.end()}, std::move(body), std::move(done)});
}

std::chrono::steady_clock::time_point tcp_session::heard() const {
  return std::chrono::steady_clock::time_point(std::chrono::steady_clock::duration(meter_->heard_ns.load()));
}

void tcp_session::close(std::exception_ptr why) {
  if (!why) why = std::make_exception_ptr(error(errc::node_lost, named(terms_) + ": this side has closed the session"));
  end(std::move(why));
}

void tcp_session::end(std::exception_ptr why) {
  if (ending_.exchange(true)) return;
  control_line_.mute();
  control_.post([self = shared_from_this(), why = std::move(why)] {
    self->control_line_.close();
    self->bulk_.post([self, why] {
      self->bulk_line_.close([self, why] { self->control_.post([self, why] { self->ended_(self, why); }); });
    });
  });
}

}  // namespace troupe::net::tcp
