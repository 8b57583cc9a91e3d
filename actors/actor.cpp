// What this file is for: what every actor of a runtime is made of.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/actor.hpp"

#include <cxxabi.h>

#include <utility>

#include "devices/threads.hpp"

namespace troupe::detail {

std::string text_of(const std::exception_ptr& e) noexcept {
  if (!e) return {};
  try {
    std::rethrow_exception(e);
  } catch (const std::exception& x) {
    return x.what() ? x.what() : "an exception without a text";
  } catch (const char* s) {  // also nullptr
    return s ? s : "a null pointer";
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}

void planted_fault::plant(std::exception_ptr what) {
  std::lock_guard hold(lock_);
  what_ = std::move(what);
  is_planted_.store(true, std::memory_order_relaxed);
}

void planted_fault::raise() {
  std::exception_ptr what;
  {
    std::lock_guard hold(lock_);
    what = std::exchange(what_, nullptr);
    is_planted_.store(false, std::memory_order_relaxed);
  }
  if (what) std::rethrow_exception(what);
}

actor_thread::~actor_thread() {
  if (thread_.joinable()) thread_.detach();  // the last user of the actor was this thread
}

void actor_thread::start(std::string name, std::shared_ptr<void> kept, std::function<void()> main,
                         failure_sink failed) {
  if (thread_.joinable()) thread_.join();
  auto now = std::make_shared<state>();
  thread_ = std::thread([now, name = std::move(name), kept = std::move(kept), main = std::move(main),
                         failed = std::move(failed)]() mutable {
    devices::name_this_thread(name);
    std::exception_ptr why;
    try {
      main();
    } catch (const abi::__forced_unwind&) {
      throw;
    } catch (...) {
      why = std::current_exception();
    }
    {
      std::lock_guard hold(now->lock);
      now->ended = true;
    }
    now->changed.notify_all();
    if (why && failed) failed(std::move(why));
    main = nullptr;
    failed = nullptr;
    kept = nullptr;
  });
  state_ = std::move(now);
}

bool actor_thread::wait_ended(std::chrono::steady_clock::time_point deadline) {
  if (!state_) return true;
  bool ended;
  {
    std::unique_lock hold(state_->lock);
    ended = state_->changed.wait_until(hold, deadline, [&] { return state_->ended; });
  }
  if (!thread_.joinable()) return ended;
  ended ? thread_.join() : thread_.detach();
  return ended;
}

void actor_thread::join() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace troupe::detail
