// What this file is for: a thread's fibres: functions that can stop in the middle and go on later.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#include <cstddef>
#include <memory>

namespace troupe::soft_gpu {

/// Belongs to the thread that made it. Used again and again; must have finished, or never run, when it is destroyed.
class fibre {
 public:
  using function = void (*)(void*);

  fibre();
  ~fibre();
  fibre(const fibre&) = delete;
  fibre& operator=(const fibre&) = delete;

  /// Sets the function that the next `resume` begins with; it must not throw. The last one has finished.
  void start(function, void* argument) noexcept;
  /// Runs until it pauses (true) or has finished (false).
  bool resume() noexcept;
  /// Inside the fibre: returns to `resume`.
  void pause() noexcept;

 private:
#if defined(__x86_64__)
  using context = void*;  // the stack's top, with the registers on it
#else
  using context = ucontext_t;
#endif

  static void loop() noexcept;
  static void change(context& from, context& to) noexcept;

  static constexpr std::size_t stack_bytes = 64 << 10;

  context own_{}, caller_{};
  std::unique_ptr<std::byte[]> stack_;
  function function_ = nullptr;
  void* argument_ = nullptr;
  bool finished_ = true;
  // The sanitizers' names for this fibre and for the stack that resumed it.
  [[maybe_unused]] void *thread_sanitizer_ = nullptr, *thread_sanitizer_caller_ = nullptr;
  [[maybe_unused]] void* fake_stack_ = nullptr;
  [[maybe_unused]] const void* caller_stack_ = nullptr;
  [[maybe_unused]] std::size_t caller_stack_bytes_ = 0;
};

}  // namespace troupe::soft_gpu
