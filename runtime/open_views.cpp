// What this file is for: the list of open host views, and the bounds of stacks.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/open_views.hpp"

#include <pthread.h>

#include <cstdint>
#include <string>
#include <utility>

#include <troupe/detail/engine.hpp>

#include "actors/logic/data/array_core.hpp"

// AddressSanitizer may have locals lie elsewhere than on the stack; null in programs without it.
extern "C" {
[[gnu::weak]] void* __asan_get_current_fake_stack();
[[gnu::weak]] void* __asan_addr_is_in_fake_stack(void* fake_stack, void* address, void** begin, void** end);
}

namespace troupe::detail {

namespace {

// True if the address is that of a local of this thread, in a program that AddressSanitizer watches.
bool is_watched_local(const void* at) noexcept {
  if (!__asan_get_current_fake_stack || !__asan_addr_is_in_fake_stack) return false;
  void* const stack = __asan_get_current_fake_stack();
  return stack && __asan_addr_is_in_fake_stack(stack, const_cast<void*>(at), nullptr, nullptr);
}

struct stack_bounds {
  std::uintptr_t low = 0, high = 0;  // both 0: unknown
  stack_bounds() noexcept {
    pthread_attr_t a;
    if (pthread_getattr_np(pthread_self(), &a) != 0) return;
    void* begin = nullptr;
    std::size_t size = 0;
    if (pthread_attr_getstack(&a, &begin, &size) == 0) {
      low = reinterpret_cast<std::uintptr_t>(begin);
      high = low + size;
    }
    pthread_attr_destroy(&a);
  }
};

struct this_thread {
  stack_bounds stack;
  const void* mark() const { return this; }
};

const this_thread& here() {
  thread_local const this_thread t;
  return t;
}

}  // namespace

open_views::held::~held() {
  for (task_record* t : tasks_) release(t);
}

std::string open_views::held::names() const {
  std::string s;
  for (const task_record* t : tasks_) s += (s.empty() ? "'" : ", '") + t->accesses[0].array->spec.name + "'";
  return s;
}

void open_views::add(open_view& v) {
  v.opener = here().mark();
  std::lock_guard hold(lock_);
  v.after = std::exchange(first_, &v);
  if (v.after) v.after->before = &v;
  count_.fetch_add(1, std::memory_order_relaxed);
}

void open_views::remove(open_view& v) {
  std::lock_guard hold(lock_);
  (v.before ? v.before->after : first_) = v.after;
  if (v.after) v.after->before = v.before;
  count_.fetch_sub(1, std::memory_order_relaxed);
}

void open_views::move(open_view& v, const void* view) noexcept {
  const this_thread& me = here();
  const auto at = reinterpret_cast<std::uintptr_t>(view);
  const bool is_mine = (at >= me.stack.low && at < me.stack.high) || is_watched_local(view);
  v.holder.store(is_mine ? me.mark() : nullptr, std::memory_order_relaxed);
}

template <class F>
open_views::held open_views::those(F&& wanted) const {
  held h;
  if (count_.load(std::memory_order_relaxed) == 0) return h;  // views that this thread has opened would be counted
  std::lock_guard hold(lock_);
  for (const open_view* v = first_; v; v = v->after) {
    if (!wanted(*v)) continue;
    h.tasks_.push_back(v->task);
    retain(v->task);
  }
  return h;
}

open_views::held open_views::of_this_thread() const {
  return those([](const open_view& v) { return v.holder.load(std::memory_order_relaxed) == here().mark(); });
}

open_views::held open_views::kept_by_this_thread() const {
  return those([](const open_view& v) {
    return v.opener == here().mark() && v.holder.load(std::memory_order_relaxed) == nullptr;
  });
}

}  // namespace troupe::detail
