// What this file is for: the sessions that live, and the order in which one takes another's place.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/tcp/peers.hpp"
#include "net/tcp/session.hpp"

namespace troupe::net::tcp {

/// On the control thread.
class roster {
 public:
  roster(loop& control, loop& bulk, fabric_drive* fabric, node_id self, transport_events& events)
      : control_(control), bulk_(bulk), fabric_(fabric), events_(events), peers_(self) {}

  peers& rules() { return peers_; }
  /// Calls `then` with why that process is not to have a session, or nothing: at once if no other has its name or its
  /// id; else in a second, so that the one that is there has time to show it. `last`: the last session with it that it
  /// has seen end, or that it is to replace; a process that knows that is the same.
  void when_free(const identity&, const endpoint& remote, std::optional<std::uint64_t> last,
                 std::function<void(const std::string& why_not)> then);
  /// Returns the number of the session with the process of that id and incarnation, if there is one.
  std::optional<std::uint64_t> number_of(const identity&) const;
  /// The session is to be: `up` is told once those that it takes the place of are down.
  void admit(tcp_session::terms, tcp_session::streams);
  /// Ends all, and tells when that is done. Nothing is admitted any more.
  void end_all(std::exception_ptr why, std::function<void()> done);

 private:
  struct coming {
    std::shared_ptr<tcp_session> session;
    std::vector<std::shared_ptr<tcp_session>> after;  ///< those that have to be down first
  };

  void ended(const std::shared_ptr<tcp_session>&, std::exception_ptr why);
  void raise_ready();
  std::shared_ptr<tcp_session> holder(const identity&, const endpoint& remote, std::optional<std::uint64_t> last) const;

  loop& control_;
  loop& bulk_;
  fabric_drive* const fabric_;
  transport_events& events_;
  peers peers_;
  std::vector<std::shared_ptr<tcp_session>> live_;
  std::list<coming> coming_;
  std::function<void()> done_;
};

}  // namespace troupe::net::tcp
