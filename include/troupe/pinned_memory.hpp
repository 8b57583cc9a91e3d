// What this file is for: memory of the caller's that is pinned for the devices of a runtime.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>

namespace troupe {

class runtime;

namespace detail {
struct runtime_state;
}

/// Keeps memory of the caller's pinned, as `runtime::pin` has pinned it, until it is destroyed. A value that can be
/// moved. It may outlive its runtime, with which the pinning ends. Its functions are not for several threads at once.
///
/// Destroy it before the memory is freed, and after the arrays that borrow the memory have given it back
/// (`array::release`, `wait_all`): a driver may wait for its device then, and no copy from or to the memory may be
/// under way. Memory that several handles pin, also in part or of several runtimes, is unpinned with the first of them.
class pinned_memory {
 public:
  pinned_memory() noexcept = default;
  pinned_memory(pinned_memory&& other) noexcept { swap(other); }
  pinned_memory& operator=(pinned_memory&& other) noexcept {
    pinned_memory(std::move(other)).swap(*this);
    return *this;
  }
  ~pinned_memory();

  /// True if the copies of at least one device gain by it; also where somebody else had pinned all of the memory
  /// before. False: no device gains, or their drivers have refused; copies work all the same.
  explicit operator bool() const noexcept { return state_ && gains_; }

 private:
  friend class runtime;
  pinned_memory(detail::runtime_state&, std::byte*, std::size_t);
  void swap(pinned_memory& other) noexcept {
    std::swap(state_, other.state_);
    std::swap(number_, other.number_);
    std::swap(gains_, other.gains_);
  }

  detail::runtime_state* state_ = nullptr;  // with a reference
  unsigned long number_ = 0;                // what the memory is known by; 0: nothing is to be undone
  bool gains_ = false;
};

}  // namespace troupe
