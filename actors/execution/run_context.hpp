// What this file is for: one run of one body: its views, what must be copied back, what must be put back if it fails.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <troupe/detail/task.hpp>
#include <troupe/error.hpp>

#include "actors/logic/data/array_core.hpp"
#include "actors/logic/data/region.hpp"
#include "actors/memory/record_pool.hpp"
#include "devices/device.hpp"

namespace troupe::detail {

/// Reusable buffers of one thread; no allocation in steady state.
class scratch {
 public:
  scratch() = default;
  /// Pinned buffers where there is room for them.
  explicit scratch(tile_memory* pinned) : pinned_(pinned) {}
  ~scratch();
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;

  /// For what a task sees of that array: aligned as its elements want. Throws error(out_of_memory).
  std::byte* take(std::size_t bytes, const array_core& of);
  void give_back(const std::byte*) noexcept;

 private:
  struct buffer {
    std::byte* data = nullptr;
    std::size_t size = 0;
    bool used = false, pinned = false;
  };
  void fill(buffer&, std::size_t bytes, const array_core& of);
  void empty(buffer&) noexcept;

  std::vector<buffer> buffers_;
  tile_memory* const pinned_ = nullptr;
};

class run_context : public task_context {
 public:
  /// `below`: the context of the body that may wait for this one's on the same stack.
  run_context(devices::device& host, house_link& link, scratch& s, const char* executor,
              const std::atomic<bool>& stopping, const run_context* below = nullptr)
      : below_(below), host_(host), link_(link), scratch_(s), executor_(executor), stopping_(stopping) {}
  virtual ~run_context() = default;

  /// Begins with another task; one at a time.
  void bind(task_record& t) {
    task_.store(&t, std::memory_order_relaxed);
    attempt_ = 1;
    failure_ = errc::task_failed;
  }

  const char* executor() const override { return executor_; }
  bool stop_requested() const override {
    return stopping_.load(std::memory_order_relaxed) || (task()->extra && task()->extra->options.stop.stop_requested());
  }
  int attempt() const override { return attempt_; }
  std::span<const held_device> devices() const override {
    return task()->extra ? std::span<const held_device>(task()->extra->devices) : std::span<const held_device>();
  }
  raw_view view_of(int access) override;

  void next_attempt() {
    ++attempt_;
    failure_ = errc::task_failed;
  }
  /// What its task fails with where this attempt does: the code of what kept a view from being made, else task_failed.
  errc failure() const { return failure_; }
  /// Copies assembled pieces back and gives partials back: the body succeeded.
  void commit();
  /// Puts back what was updated in place (only where retries are left), drops the rest.
  void roll_back() noexcept;
  /// Since the last call.
  std::uint64_t take_bytes_moved() { return std::exchange(bytes_, 0); }
  /// Any thread, as long as the task cannot retire.
  task_record* task() const { return task_.load(std::memory_order_relaxed); }
  const run_context* below() const { return below_; }

 private:
  struct held {
    access* what;
    std::byte* data;             // assembled, or a partial
    logic::box4 where;           // array coordinates
    std::byte* saved = nullptr;  // contents before the body, where a retry needs them
    bool assembled = false;
    view_bytes partial;
  };

  raw_view make_view(int access);
  std::byte* tile(array_core&, std::uint32_t, bool overwritten);
  void gather(const region&, array_core&, const logic::box4& view, std::byte* to);
  void gather_run(const region&, array_core&, logic::point4 at, index_t count, std::byte* to);
  void scatter(array_core&, const logic::box4& view, const std::byte* from);
  raw_view partial_view(access&);
  void finish() noexcept;

  std::atomic<task_record*> task_{nullptr};
  const run_context* const below_;
  devices::device& host_;
  house_link& link_;
  scratch& scratch_;
  const char* executor_;
  const std::atomic<bool>& stopping_;
  int attempt_ = 1;
  errc failure_ = errc::task_failed;
  std::uint64_t bytes_ = 0;
  std::vector<held> held_;
};

/// Combines the partials of a reduction into the array; the body of a settle task.
void settle_reduction(task_record&, devices::device&, run_context&);

}  // namespace troupe::detail
