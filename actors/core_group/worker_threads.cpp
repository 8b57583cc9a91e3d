// What this file is for: how threads of a core group begin and end, and how a worker is lent.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/core_group/worker_threads.hpp"

#include <algorithm>
#include <new>
#include <system_error>
#include <thread>

namespace troupe::detail {

void worker_threads::add() {
  std::lock_guard hold(lock_);
  const auto dismissed =
      std::ranges::find_if(threads_, [](const auto& t) { return t->ended.load() && t->parking_state.dismissed; });
  const bool again = dismissed != threads_.end();
  auto w = again ? *dismissed : std::make_shared<worker>(where_, static_cast<int>(threads_.size()));
  if (again) {
    if (w->handle.joinable()) w->handle.join();  // the ended thread takes no lock that is held here
    w->ended.store(false);
  } else {
    open_lane_(*w, false);
    threads_.push_back(w);
  }
  try {
    w->handle = std::thread(main_(w));
  } catch (...) {
    again ? w->ended.store(true) : threads_.pop_back();
    throw;
  }
}

bool worker_threads::try_add() {
  try {
    add();
    return true;
  } catch (const std::system_error&) {
    return false;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void worker_threads::ended(worker& w) {
  std::lock_guard hold(lock_);
  w.system_thread.store(-1, std::memory_order_relaxed);  // the system may give its number to another thread
  w.ended.store(true);
  ended_.notify_all();
}

bool worker_threads::wait_ended(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock hold(lock_);
  const bool all = ended_.wait_until(hold, deadline, [&] {
    return helpers_free_.size() == helpers_.size() &&
           std::all_of(threads_.begin(), threads_.end(), [](const auto& t) { return t->ended.load(); });
  });
  for (auto& t : threads_) {
    if (!t->handle.joinable()) continue;
    if (t->ended.load())
      t->handle.join();
    else
      t->handle.detach();  // its body does not return; the group lives until the thread ends
  }
  return all;
}

int worker_threads::count() const {
  std::lock_guard hold(lock_);
  return static_cast<int>(
      std::count_if(threads_.begin(), threads_.end(), [](const auto& t) { return !t->ended.load(); }));
}

worker& worker_threads::take_helper() {
  std::lock_guard hold(lock_);
  if (helpers_free_.empty()) {
    auto g = std::make_unique<worker>(where_, static_cast<int>(helpers_.size()));
    g->parking_state.has_slot = true;  // the borrowed one
    open_lane_(*g, true);
    helpers_free_.reserve(helpers_.size() + 1);
    helpers_.push_back(std::move(g));
    return *helpers_.back();
  }
  worker& g = *helpers_free_.back();
  helpers_free_.pop_back();
  return g;
}

void worker_threads::give_helper(worker& g) {
  std::lock_guard hold(lock_);
  g.system_thread.store(-1, std::memory_order_relaxed);
  helpers_free_.push_back(&g);
  if (where_.stopping.load(std::memory_order_relaxed)) ended_.notify_all();
}

}  // namespace troupe::detail
