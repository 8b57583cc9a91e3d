// What this file is for: fibres, with what the sanitizers must be told.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Why not ucontext everywhere? Each of its switches is a system call that saves the signal mask: ten times the time.
#include "devices/sim/fibre.hpp"

#include <algorithm>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

#if defined(__x86_64__)
// Puts what a function must keep (System V ABI 3.2.1) onto the stack it leaves, and takes it from the one it enters.
extern "C" void troupe_sim_change_stack(void** from, void* to) noexcept;
asm(R"(
.pushsection .text
.p2align 4
.globl troupe_sim_change_stack
.hidden troupe_sim_change_stack
.type troupe_sim_change_stack, @function
troupe_sim_change_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size troupe_sim_change_stack, .-troupe_sim_change_stack
.popsection
)");
#endif

namespace troupe::soft_gpu {

namespace {

thread_local fibre* entering = nullptr;  // a new stack is given no arguments

}  // namespace

fibre::fibre() : stack_(new std::byte[stack_bytes]) {
#if defined(__x86_64__)
  // As if `loop` had just been called by nobody: six registers, its address, no address to return to.
  constexpr std::size_t registers = 6;
  auto* top = reinterpret_cast<void**>(stack_.get() + stack_bytes);  // aligned to 16, as what `new` gives
  top[-1] = nullptr;
  top[-2] = reinterpret_cast<void*>(&fibre::loop);
  own_ = std::fill_n(top - 2 - registers, registers, nullptr) - registers;
#else
  ::getcontext(&own_);
  own_.uc_stack.ss_sp = stack_.get();
  own_.uc_stack.ss_size = stack_bytes;
  own_.uc_link = nullptr;
  ::makecontext(&own_, &fibre::loop, 0);
#endif
#if defined(__SANITIZE_THREAD__)
  thread_sanitizer_ = __tsan_create_fiber(0);
#endif
}

fibre::~fibre() {  // NOLINT(modernize-use-equals-default): not with the sanitizer
#if defined(__SANITIZE_THREAD__)
  __tsan_destroy_fiber(thread_sanitizer_);
#endif
}

void fibre::change(context& from, context& to) noexcept {
#if defined(__x86_64__)
  troupe_sim_change_stack(&from, to);
#else
  ::swapcontext(&from, &to);
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
  change(caller_, own_);
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
  change(own_, caller_);
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

}  // namespace troupe::soft_gpu
