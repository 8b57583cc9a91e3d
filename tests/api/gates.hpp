// What this file is for: how tests make bodies wait for each other, with a limit instead of a hang, and read errors.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include <troupe/troupe.hpp>

namespace test {

/// How long a test waits for something that must happen. Long enough for sanitizers on a loaded machine.
inline constexpr std::chrono::seconds patience{30};

/// Opens once and stays open.
class gate {
 public:
  void open() {
    const std::lock_guard hold(lock_);
    open_ = true;
    changed_.notify_all();
  }
  /// False if nobody opened it in time.
  [[nodiscard]] bool pass() {
    std::unique_lock hold(lock_);
    return changed_.wait_for(hold, patience, [&] { return open_; });
  }
  bool is_open() {
    const std::lock_guard hold(lock_);
    return open_;
  }

 private:
  std::mutex lock_;
  std::condition_variable changed_;
  bool open_ = false;
};

/// Opens its gate when a test ends, however it ends, so that no worker stays behind.
class opener {
 public:
  explicit opener(gate& g) : gate_(&g) {}
  ~opener() { gate_->open(); }
  opener(const opener&) = delete;
  opener& operator=(const opener&) = delete;

 private:
  gate* gate_;
};

/// A task whose body has begun and goes on until it is let go.
class held_body {
 public:
  explicit held_body(troupe::runtime& rt, const troupe::task_options& options = {})
      : ends_(rt.spawn(options, [this] {
          begun_.open();
          return let_go_.pass();
        })) {}
  ~held_body() {
    let_go();
    ends_.wait();
  }
  held_body(const held_body&) = delete;
  held_body& operator=(const held_body&) = delete;
  [[nodiscard]] bool has_begun() { return begun_.pass(); }
  void let_go() { let_go_.open(); }

 private:
  gate begun_, let_go_;
  troupe::future<bool> ends_;
};

/// Passes once the given number of threads have arrived: a proof that they run at the same time.
class meeting {
 public:
  explicit meeting(int expected) : missing_(expected) {}
  /// False if the others did not come in time.
  [[nodiscard]] bool arrive_and_wait() {
    std::unique_lock hold(lock_);
    if (--missing_ <= 0) {
      changed_.notify_all();
      return true;
    }
    return changed_.wait_for(hold, patience, [&] { return missing_ <= 0; });
  }

 private:
  std::mutex lock_;
  std::condition_variable changed_;
  int missing_;
};

/// The error that a call threw, as far as troupe's errors tell it.
struct caught {
  troupe::errc code{};
  std::string text;
  bool from_task = false;  // the rest is set for task_failed only
  std::string task, executor, root;
  int attempts = 0;
  std::exception_ptr cause;

  bool says(std::string_view part) const { return text.find(part) != std::string::npos; }
  /// The text of the original exception; empty without one.
  std::string cause_text() const {
    if (!cause) return {};
    try {
      std::rethrow_exception(cause);
    } catch (const std::exception& e) {
      return e.what();
    } catch (...) {
      return "?";
    }
  }
};

/// Calls `f` and gives the troupe error it throws; empty if it throws none. Everything else passes through.
template <class F>
std::optional<caught> error_of(F&& f) {
  try {
    std::forward<F>(f)();
  } catch (const troupe::task_failed& e) {
    return caught{e.code(), e.what(), true, e.task(), e.executor(), e.root_task(), e.attempts(), e.cause()};
  } catch (const troupe::error& e) {
    return caught{e.code(), e.what(), false, {}, {}, {}, 0, nullptr};
  }
  return std::nullopt;
}

/// The code of the troupe error that `f` throws; empty if it throws none.
template <class F>
std::optional<troupe::errc> code_of(F&& f) {
  const auto e = error_of(std::forward<F>(f));
  return e ? std::optional(e->code) : std::nullopt;
}

}  // namespace test

namespace troupe {
/// How GoogleTest prints the codes.
inline void PrintTo(errc code, std::ostream* out) { *out << "errc(" << static_cast<int>(code) << ")"; }
}  // namespace troupe
