// What this file is for: the supervisor of a runtime's actors, itself a CAF actor. For actors/control and its tests.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   supervisor --+-- controller of placement, of each core group, gpu, node, ...   (one for each actor that is watched)
//                +-- trace observer
//                `-- housekeeper
//
// A controller ends when its actor has failed, or when a call of it has thrown. The supervisor monitors all below it:
// a `down` leads to the row of the table in protocol/supervision.hpp, and to another controller.
#pragma once

#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "actors/control/caf.hpp"
#include "actors/control/control.hpp"

namespace troupe::detail {

// Messages are bells: what they announce lies on a desk behind a lock. CAF's mailboxes hand over by lock-free means
// that tools cannot see into, and may copy what they carry.
struct desk_changed {};
struct actor_failed {};
struct act_on_verdict {};

using supervisor_actor = caf::typed_actor<caf::reacts_to<desk_changed>>;
using controller_actor = caf::typed_actor<caf::reacts_to<actor_failed>, caf::reacts_to<act_on_verdict>>;

/// The actors that the supervisor watches, and their failures. Any thread adds and reports.
class supervision_desk {
 public:
  struct watched {
    std::weak_ptr<actor> who;
    actor_kind kind{};
    std::string label;
    int failures = 0;
    bool withdrawing = false;  // a failure now is one of `withdraw`
    std::exception_ptr why;    // of the last failure
    verdict what{};            // was done about it
  };

  /// Adds an actor; returns its number.
  std::size_t add(std::weak_ptr<actor>);
  /// Adds one that lives in the actor system only.
  std::size_t add(actor_kind, std::string label);
  /// Notes why an actor fails, or one of the system is about to.
  void note_reason(std::size_t number, std::exception_ptr why);
  /// Notes that an actor has failed.
  void note_failure(std::size_t number, std::exception_ptr why);
  /// Numbers of the actors that have been added, and that have failed, since the last call.
  struct news {
    std::vector<std::size_t> added, failed;
  };
  news take_news();
  /// Counts the failure that was noted, and returns what is to be done about it.
  verdict count_failure(std::size_t number);
  void note_withdrawing(std::size_t number, bool);
  watched get(std::size_t number) const;
  /// Calls `f` unless supervision has ended; `close` waits until it has returned.
  template <class F>
  void act(F&& f) {
    std::lock_guard hold(acting_);
    if (!closed_) f();
  }
  void close() {
    std::lock_guard hold(acting_);
    closed_ = true;
  }

 private:
  mutable std::mutex lock_;
  std::deque<watched> all_;
  news news_;
  std::mutex acting_;  // held while a verdict is carried out
  bool closed_ = false;
};

/// An actor of the system itself that the supervisor starts, and starts again.
struct system_actor {
  std::size_t number = 0;  // on the desk
  std::function<caf::actor(caf::actor_system&)> spawn;
  std::function<void(const caf::actor&, bool first)> spawned;  // told the actor that messages go to, or null at the end
};

/// Starts the actors of the system, which may be sent messages as soon as this returns, and the supervisor above them.
/// The desk and the options outlive it.
supervisor_actor start_supervisor(caf::actor_system&, supervision_desk&, const control_options&,
                                  std::vector<system_actor> below);

}  // namespace troupe::detail

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::detail::desk_changed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::detail::actor_failed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::detail::act_on_verdict)
