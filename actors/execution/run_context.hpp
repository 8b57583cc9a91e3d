// What this file is for: one run of one body: its views, copies to write back on success, copies to restore on failure.
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
#include "actors/logic/data/view_bytes.hpp"
#include "devices/accelerator.hpp"
#include "devices/device.hpp"

namespace troupe::detail {

class tile_memory;
class tile_room;

/// Reusable buffers of one thread; no allocation in steady state.
class scratch {
 public:
  scratch() = default;
  /// Takes pinned buffers from `pinned` where it has room for them.
  explicit scratch(tile_memory* pinned) : pinned_(pinned) {}
  ~scratch();
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;

  /// Returns a buffer for a view of that array: aligned as its elements need. Throws error(out_of_memory).
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

/// The context of one body at a time: makes its views, and writes back or restores what it touched.
class run_context : public task_context {
 public:
  /// `below`: the context of the body that may wait for this one's on the same stack.
  run_context(devices::device& host, runtime_state& rt, scratch& s, const char* executor,
              const std::atomic<bool>& stopping, const run_context* below = nullptr)
      : below_(below), host_(host), rt_(rt), scratch_(s), executor_(executor), stopping_(stopping) {}
  virtual ~run_context() = default;

  /// Binds the context to another task; one at a time. `run`: that of the graph whose call the task is, or null.
  void bind(task_record& t, task_record* run = nullptr) {
    task_.store(&t, std::memory_order_relaxed);
    run_ = run;
    attempt_ = 1;
    failure_ = errc::task_failed;
  }

  const char* executor() const override { return executor_; }
  bool stop_requested() const override {
    return stopping_.load(std::memory_order_relaxed) || asks_to_stop(*task()) || (run_ && asks_to_stop(*run_));
  }
  int attempt() const override { return attempt_; }
  std::span<const held_device> devices() const override {
    return task()->extra ? std::span<const held_device>(task()->extra->devices) : std::span<const held_device>();
  }
  raw_view view_of(int access) override;

  /// Has windows shown where their tile is, if there is room for them: for bodies each of whose runs ends with `commit`
  /// or `roll_back`.
  void use_rooms() { uses_rooms_ = true; }
  void next_attempt() {
    ++attempt_;
    failure_ = errc::task_failed;
  }
  /// Returns the code that the task fails with if this attempt does: that of the error which kept a view from being
  /// made, else task_failed.
  errc failure() const { return failure_; }
  /// Writes assembled views back and returns partials, after the body has succeeded.
  void commit();
  /// Restores what the body updated in place (only where retries are left), and drops the rest.
  void roll_back() noexcept;
  /// Returns the bytes copied since the last call.
  std::uint64_t take_bytes_moved() { return std::exchange(bytes_, 0); }
  /// Returns the bound task. Any thread, as long as the task cannot retire.
  task_record* task() const { return task_.load(std::memory_order_relaxed); }
  /// Returns the task that stands in the order of the program: the run, if the body is a call of a recorded graph.
  task_record& ordered_task() const { return run_ ? *run_ : *task(); }
  const run_context* below() const { return below_; }

 private:
  struct held {
    access* what;
    std::byte* data;             // assembled, or a partial
    logic::box4 where;           // array coordinates
    std::byte* saved = nullptr;  // the contents before the body, if a retry needs them
    bool assembled = false;
    view_bytes partial;
    tile_room* room = nullptr;  // shows a window
  };

  static bool asks_to_stop(const task_record& t) { return t.extra && t.extra->options.stop.stop_requested(); }
  raw_view make_view(int access);
  raw_view view_of_tile(access&, bool restorable);
  raw_view view_of_box(access&, bool restorable);
  bool show_in_room(access&, const logic::box4& view, raw_view&);
  bool are_in_place(array_core&, const logic::box4&, bool overwritten);
  void fill_rim(const region&, array_core&, const logic::box4& view, const logic::box4& tile, tile_room&);
  void fill_column(const region&, array_core&, const logic::box4& tile, index_t at, tile_room&);
  static raw_view view_of_whole(const array_core&, std::byte*);
  void keep_for_retry(access&, const region&, const logic::box4&);
  const std::byte* element_at(array_core&, const logic::point4&);
  std::byte* element_at(array_core&, std::uint32_t tile, const logic::box4& tile_box, const devices::strides&,
                        const logic::point4&);
  bool has_boxes_of(const array_core&) const;
  static std::size_t bytes_to(const home_box&, const logic::point4&);
  const home_box* box_at(const array_core&, std::uint32_t tile, const logic::point4&) const;
  std::byte* tile(array_core&, std::uint32_t, bool overwritten);
  void gather(const region&, array_core&, const logic::box4& view, std::byte* to);
  void gather_run(const region&, array_core&, logic::point4 at, index_t count, std::byte* to);
  std::byte* copy_inside(array_core&, logic::point4 at, index_t source, index_t length, std::byte* to);
  void scatter(array_core&, const logic::box4& view, const std::byte* from);
  raw_view partial_view(access&);
  void finish() noexcept;

  std::atomic<task_record*> task_{nullptr};
  task_record* run_ = nullptr;
  const run_context* const below_;
  devices::device& host_;
  runtime_state& rt_;
  scratch& scratch_;
  const char* executor_;
  const std::atomic<bool>& stopping_;
  int attempt_ = 1;
  errc failure_ = errc::task_failed;
  std::uint64_t bytes_ = 0;
  bool uses_rooms_ = false;
  std::vector<held> held_;
};

/// Combines the partials of a reduction into the array; the body of a combine task.
void combine_partials(task_record&, devices::device&, run_context&);

}  // namespace troupe::detail
