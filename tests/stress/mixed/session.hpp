// What this file is for: what all threads of a mixed load share: the runtime, what is under way, what was found wrong.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <troupe/troupe.hpp>

#include "plan.hpp"

namespace mixed {

/// An error on purpose, to prove that the load sees such errors.
enum class planted : unsigned char {
  nothing,
  wrong_value,    // a body writes one element that is wrong
  lost_update,    // a body does not change one element
  swapped_order,  // the oracle takes two operations in the wrong order
  hang,           // a body never ends
  lost_future,    // a wait for what nobody does
  greed,          // a body says that it holds more of a quantity than there is
  leak,           // a closure that is never destroyed
  crash,          // a body gets a SIGSEGV
};

/// Where an operation is.
enum class phase : unsigned char { not_called, calling, called, began, ended };

class session {
 public:
  session(const plan&, planted);

  const plan& about() const { return plan_; }
  troupe::runtime& runtime() { return *runtime_; }
  void start();
  /// Ends the runtime. False if that took longer than a body can.
  void stop();
  bool has_runtime() const { return runtime_ != nullptr; }
  /// Whether there are devices: of OpenCL a plan does not know.
  bool has_devices() const { return has_devices_; }

  // ---- progress ----
  void progress() { progress_.fetch_add(1, std::memory_order_relaxed); }
  const std::atomic<std::uint64_t>& steps() const { return progress_; }
  void at(std::size_t client, std::size_t operation, phase p) {
    phases_[client][operation].store(p, std::memory_order_relaxed);
    progress();
  }
  /// Prints what has been called and has not ended, for people.
  void describe(std::FILE*) const;

  // ---- what bodies hold, and that it is not too much ----
  void take(const std::vector<amount_plan>&, std::span<const troupe::held_device>);
  void give(const std::vector<amount_plan>&, std::span<const troupe::held_device>);
  void take_cores(int n, const operation&);
  void give_cores(int n, const operation&);

  // ---- what lives ----
  std::atomic<std::int64_t>& alive() { return alive_; }

  // ---- errors ----
  planted fault() const { return planted_; }
  void complain(const std::string&);
  /// A client has given up: what it leaves is not worth a look.
  void give_up() { given_up_ = true; }
  bool given_up() const { return given_up_; }
  std::vector<std::string> complaints() const;

 private:
  const plan& plan_;
  planted planted_;
  std::unique_ptr<troupe::runtime> runtime_{};
  bool has_devices_ = false;
  std::string folder_{};  // for what is spilled
  std::atomic<std::uint64_t> progress_{0};
  std::vector<std::deque<std::atomic<phase>>> phases_{};
  int cores_ = 0;
  std::multiset<const operation*> holders_{};  // of slots
  std::atomic<bool> given_up_{false};
  std::atomic<std::int64_t> alive_{0};
  mutable std::mutex lock_{};
  std::map<std::string, int> held_{};
  std::vector<std::string> complaints_{};
};

/// Counts how many of it live.
class counted {
 public:
  explicit counted(session& s) : session_(&s) { s.alive().fetch_add(1, std::memory_order_relaxed); }
  counted(const counted& o) : session_(o.session_) { session_->alive().fetch_add(1, std::memory_order_relaxed); }
  counted& operator=(const counted&) = default;
  ~counted() { session_->alive().fetch_sub(1, std::memory_order_relaxed); }

 private:
  session* session_;
};

}  // namespace mixed
