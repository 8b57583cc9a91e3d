// What this file is for: fibres by ucontext, with what the sanitizers must be told.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "devices/sim/fibre.hpp"

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace troupe::sim {

namespace {

thread_local fibre* entering = nullptr;  // makecontext passes no pointer

}  // namespace

fibre::fibre() : stack_(new std::byte[stack_bytes]) {
  ::getcontext(&own_);
  own_.uc_stack.ss_sp = stack_.get();
  own_.uc_stack.ss_size = stack_bytes;
  own_.uc_link = nullptr;
  ::makecontext(&own_, &fibre::loop, 0);
#if defined(__SANITIZE_THREAD__)
  thread_sanitizer_ = __tsan_create_fiber(0);
#endif
}

fibre::~fibre() {
#if defined(__SANITIZE_THREAD__)
  __tsan_destroy_fiber(thread_sanitizer_);
#endif
}

void fibre::start(function f, void* argument) noexcept {
  function_ = f;
  argument_ = argument;
  finished_ = false;
}

bool fibre::resume() noexcept {
  entering = this;
#if defined(__SANITIZE_THREAD__)
  thread_sanitizer_caller_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(thread_sanitizer_, 0);
#endif
#if defined(__SANITIZE_ADDRESS__)
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, stack_.get(), stack_bytes);
#endif
  ::swapcontext(&caller_, &own_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
  return !finished_;
}

void fibre::pause() noexcept {
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(thread_sanitizer_caller_, 0);
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&fake_stack_, caller_stack_, caller_stack_bytes_);
#endif
  ::swapcontext(&own_, &caller_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack_, &caller_stack_, &caller_stack_bytes_);
#endif
}

void fibre::loop() noexcept {
  fibre* f = entering;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &f->caller_stack_, &f->caller_stack_bytes_);
#endif
  for (;;) {
    f->function_(f->argument_);
    f->finished_ = true;
    f->pause();
  }
}

}  // namespace troupe::sim
