// What this file is for: what a device complains of, and the time between its failure and the verdict on it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "actors/actor.hpp"
#include "devices/accelerator.hpp"

namespace troupe::detail {

/// A device that has failed waits here for its verdict: it is opened anew, on a thread of its own because that takes up
/// to seconds, or given up.
class gpu_repair {
 public:
  using opener = std::function<std::unique_ptr<devices::accelerator>()>;
  /// Either a device, or why there is none.
  struct outcome {
    std::unique_ptr<devices::accelerator> device;
    std::exception_ptr error;
  };

  // ---- with the device's turn ---------------------------------------------------------------------------------------
  /// Keeps what the device has complained of to a thread that is not its own.
  void note_complaint(std::exception_ptr why) { complaint_ = std::move(why); }
  bool has_complaint() const { return complaint_ != nullptr; }
  /// Returns the complaint that was kept, and forgets it; null if there is none.
  std::exception_ptr take_complaint() { return std::exchange(complaint_, nullptr); }
  void begin(std::exception_ptr why) { why_ = std::move(why); }
  bool is_under_way() const { return why_ != nullptr; }
  /// The device is gone for good: no repair is begun.
  void end_for_good(std::exception_ptr why) { given_up_ = std::move(why); }
  bool is_given_up() const { return given_up_ != nullptr; }
  /// Returns the outcome and ends the repair; nothing while there is none. An error gives the device up. `give_up`:
  /// there is to be none.
  std::optional<outcome> take(bool give_up) {
    std::optional<outcome> o;
    {
      std::lock_guard hold(lock_);
      o = std::exchange(outcome_, std::nullopt);
    }
    if (!o && give_up) o.emplace(outcome{nullptr, why_});
    if (!o) return o;
    why_ = nullptr;
    if (o->error) end_for_good(o->error);
    return o;
  }

  // ---- any thread ---------------------------------------------------------------------------------------------------
  /// Opens the device on another thread, which keeps `kept` alive and calls `ring` at its end. Throws
  /// std::system_error if there is no thread.
  void open_async(const std::string& name, std::shared_ptr<void> kept, opener open, std::function<void()> ring) {
    thread_.start(
        name + " opens", std::move(kept),
        [this, open = std::move(open), ring = std::move(ring)] {
          outcome o;
          try {
            o.device = open();
          } catch (...) {
            o.error = std::current_exception();
          }
          decide(std::move(o));
          ring();
        },
        nullptr);
  }
  void refuse(std::exception_ptr why) { decide({nullptr, std::move(why)}); }
  /// Waits until no thread opens a device any more; false if the deadline passes before.
  bool wait_ended(std::chrono::steady_clock::time_point deadline) { return thread_.wait_ended(deadline); }

 private:
  void decide(outcome o) {
    std::lock_guard hold(lock_);
    outcome_ = std::move(o);
  }

  std::exception_ptr complaint_;
  std::exception_ptr why_;       // of the failure; null: the device works, or was given up
  std::exception_ptr given_up_;  // why the device can do no more
  std::mutex lock_;
  std::optional<outcome> outcome_;
  actor_thread thread_;
};

}  // namespace troupe::detail
