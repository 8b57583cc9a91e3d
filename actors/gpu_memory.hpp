// What this file is for: which tiles are in a device's memory, and what must be copied before and after its tasks.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Owned by the device's actor. Whole tiles are kept in the device's memory and used in place. What a task reads of
// several tiles, or with a border, is assembled there from tiles that are there, and from small pieces of the host's
// copies of those that are not. What a task writes in parts of tiles, and what it reduces, goes through the host's
// memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <string_view>

#include "actors/gpu_job.hpp"
#include "actors/gpu_lanes.hpp"
#include "actors/logic/outlook.hpp"
#include "actors/logic/residency.hpp"
#include "devices/accelerator.hpp"

namespace troupe::detail {

class gpu_memory {
 public:
  /// `gather`: the kernels that assemble boxes (devices/kernels).
  gpu_memory(house_link& link, gpu_lanes& lanes, std::string_view gather, std::atomic<std::uint64_t>& bytes_moved)
      : link_(link), lanes_(lanes), gather_(gather), bytes_moved_(bytes_moved) {}

  /// Another device, or none; what was in the memory of the last one must have been forgotten.
  void use(devices::accelerator*);

  // ---- a task -------------------------------------------------------------------------------------------------------
  /// Room for everything it needs, or for nothing: false.
  bool reserve(gpu_job&);
  /// Enqueues copies in, gives the job its views, and has its lane wait for what it uses.
  void fill_in(gpu_job&);
  /// Device memory for a routine, kept until the task ends; null: no room.
  void* scratch(gpu_job&, std::size_t bytes);
  /// Enqueues copies of what its body updates in place, for another attempt. Throws error(out_of_memory).
  void keep_updates(gpu_job&);
  /// Enqueues the way back.
  void put_updates_back(gpu_job&);
  /// Its kernel has been enqueued: what it writes is the newest version, for whoever is enqueued behind it.
  void note_launched(gpu_job&);
  /// Enqueues what goes to the host; false: nothing does.
  bool send_out(gpu_job&);
  /// All of it has ended well: what came out goes where it belongs.
  void put_in_place(gpu_job&);
  /// Gives back what the task holds.
  void let_go(gpu_job&);
  /// Bytes that the task needs in the device's memory at once.
  static std::uint64_t bytes_of(const task_record&);

  /// Copies in that have ended since the last call: calls f(bytes, number, ticks at which the first was enqueued) if any.
  template <class F>
  void each_arrival(F&& f) {
    std::uint64_t bytes = 0, number = 0, begun = 0;
    while (!arriving_.empty() && lanes_.has_reached(lane_in, arriving_.front().until)) {
      if (number++ == 0) begun = arriving_.front().begun;
      bytes += arriving_.front().bytes;
      arriving_.pop_front();
    }
    if (number != 0) f(bytes, number, begun);
  }

  // ---- copies -------------------------------------------------------------------------------------------------------
  logic::replica* find(const array_core&, std::uint32_t tile);
  /// More was taken since the last call, and more than half of the memory is.
  bool fills_up() { return std::exchange(fills_up_, false); }
  /// The next one to go when room is needed; null if all are in use.
  logic::replica* victim(const logic::outlook&);
  /// Bytes for which there would have to be room before the task could start, roughly.
  std::uint64_t missing_bytes(const task_record&);
  /// On their way home; afterwards they may go.
  std::uint64_t leaving_bytes() const { return leaving_bytes_; }
  /// Some copies are newer than placement knows; they may go once it does.
  bool has_unaccounted() const;
  void drop(const logic::replica&);
  /// Enqueues the copy to the host; the job ends with it.
  void send_home(logic::replica&, gpu_job&);
  void note_sent_home(gpu_job&);
  template <class F>
  void each(F&& f) {
    cache_.each(f);
  }
  /// The device is gone, and its memory.
  void forget_all();

  // ---- any thread ---------------------------------------------------------------------------------------------------
  std::uint64_t bytes_out() const { return bytes_out_.load(std::memory_order_relaxed); }
  /// The most of the device's memory that was ever in use.
  std::uint64_t used_max() const { return used_max_.load(std::memory_order_relaxed); }

 private:
  logic::replica* hold(gpu_job&, int access, array_core&, std::uint32_t tile, bool written, bool whole);
  bool reserve_part(gpu_job&, int access);
  bool reserve_sources(gpu_job&, const access&, gpu_job::part&);
  void bring_in(logic::replica&);
  void view_tile(gpu_job&, const gpu_job::held&);
  bool view_inside_tile(gpu_job&, const gpu_job::part&);
  void assemble_from_host(gpu_job&, gpu_job::part&);
  void start_assembly(gpu_job&, std::size_t part);
  void finish_assembly(gpu_job&);
  void gather(gpu_job&, const gpu_job::part&, const gpu_job::source&);
  void count(std::uint64_t bytes) { bytes_moved_.fetch_add(bytes, std::memory_order_relaxed); }
  void count_out(std::uint64_t bytes) {
    count(bytes);
    bytes_out_.fetch_add(bytes, std::memory_order_relaxed);
  }
  void note_arrival(std::uint64_t bytes);
  void* allocate(int lane, std::size_t bytes);

  house_link& link_;
  gpu_lanes& lanes_;
  const std::string_view gather_;
  std::atomic<std::uint64_t>& bytes_moved_;
  bool fills_up_ = false;
  std::uint64_t leaving_bytes_ = 0;
  std::atomic<std::uint64_t> bytes_out_{0}, used_max_{0};
  devices::accelerator* device_ = nullptr;
  logic::residency cache_;
  std::vector<logic::piece> pieces_;
  struct arrival {
    devices::ticket until;
    std::uint64_t bytes, begun;
  };
  std::deque<arrival> arriving_;  // copies in under way
};

}  // namespace troupe::detail
