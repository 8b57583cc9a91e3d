// What this file is for: what every actor of a runtime is made of.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//                +------------------------- an actor -------------------------+
//   tasks, ----->| fast door: mailbox, turn, bell  --> its own state          |
//   completions, |                                       |                    |
//   bytes        |                    what goes wrong    v                    |
//   restart, --->| slow door: class actor  <---  failure_sink --> supervisor  |
//   withdraw     +------------------------------------------------------------+
//
// Frequent messages go through the fast door (protocol/mailbox.hpp, turn.hpp, bell.hpp): the thread that posts into the
// mailbox takes the turn if it is free, or rings the bell of the thread that has it. Rare ones go through the slow
// door, on the thread of the actor system (actors/control). Messages of each actor are listed in its folder's README.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "actors/protocol/bell.hpp"
#include "actors/protocol/mailbox.hpp"
#include "actors/protocol/supervision.hpp"
#include "actors/protocol/turn.hpp"

namespace troupe::detail {

/// Where an actor reports that it has failed, with the reason. Any thread; never blocks. It must have brought itself to
/// rest: it does nothing until it is told what to do.
using failure_sink = std::function<void(std::exception_ptr)>;

/// Returns the text of an exception.
std::string text_of(const std::exception_ptr&) noexcept;

/// A fault to be thrown inside an actor, for tests of what follows. Any thread sets it; the actor looks now and then.
class planted_fault {
 public:
  void plant(std::exception_ptr what);
  /// Throws the fault, once.
  void check() {
    if (is_planted()) [[unlikely]]
      raise();
  }
  bool is_planted() const { return is_planted_.load(std::memory_order_relaxed); }

 private:
  void raise();
  std::atomic<bool> is_planted_{false};
  std::mutex lock_;
  std::exception_ptr what_;
};

/// An actor as its supervisor sees it: the slow door. The supervisor calls from the thread of the actor system, one
/// call at a time, and only what the actor's row of the table leads to; an exception out of `restart` is another
/// failure.
class actor {
 public:
  virtual ~actor() = default;
  virtual actor_kind kind() const = 0;
  /// The name that reports and remarks give it.
  virtual std::string label() const = 0;
  /// Goes on after a failure.
  virtual void restart() {}
  /// Ends for good: what it holds is given back, or fails with this reason.
  virtual void withdraw(std::exception_ptr why) { (void)why; }

  /// Sets where the actor reports failures, before it starts. Without that each failure leads to `withdraw`.
  void supervise(failure_sink door) { door_ = std::move(door); }
  /// Has the actor fail at its next step, for tests of what follows. Any thread.
  void plant(std::exception_ptr fault) {
    fault_.plant(std::move(fault));
    look_up();
  }

 protected:
  /// Reports that this actor has failed; it is at rest.
  void tell_supervisor(std::exception_ptr why) { door_ ? door_(std::move(why)) : withdraw(std::move(why)); }
  /// Throws a fault that was planted. Each actor calls it where its thread, or the thread that has its turn, looks what
  /// to do.
  void check_fault() { fault_.check(); }
  bool has_fault() const { return fault_.is_planted(); }
  /// Makes its thread look what to do.
  virtual void look_up() {}

 private:
  failure_sink door_;
  planted_fault fault_;
};

/// A thread of an actor. It has a name, keeps what it needs alive, and is left behind if it does not end in time.
class actor_thread {
 public:
  actor_thread() = default;
  actor_thread(const actor_thread&) = delete;
  actor_thread& operator=(const actor_thread&) = delete;
  ~actor_thread();

  /// Starts it; a thread started before must have ended. `kept` lives until the thread has ended. An exception out of
  /// `main` is passed to `failed`, after which the thread ends. Throws std::system_error if there is no thread.
  void start(std::string name, std::shared_ptr<void> kept, std::function<void()> main, failure_sink failed);
  /// Waits until it has ended, and joins it; if the deadline passes before, it is left behind, and this is false. True
  /// if it was never started.
  bool wait_ended(std::chrono::steady_clock::time_point deadline);
  /// Waits until it has ended.
  void join();
  bool was_started() const { return state_ != nullptr; }

 private:
  struct state {
    std::mutex lock;
    std::condition_variable changed;
    bool ended = false;
  };
  std::shared_ptr<state> state_;
  std::thread thread_;
};

}  // namespace troupe::detail
