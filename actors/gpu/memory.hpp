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
#include <span>
#include <string_view>
#include <unordered_map>

#include "actors/gpu/job.hpp"
#include "actors/gpu/lanes.hpp"
#include "actors/gpu/peer.hpp"
#include "actors/logic/data/residency.hpp"
#include "actors/logic/scheduling/lookahead_queue.hpp"
#include "devices/accelerator.hpp"
#include "devices/gather.hpp"

namespace troupe::detail {

struct home_box;

class gpu_memory {
 public:
  /// The kernels that assemble boxes (devices/kernels): from one tile, and from several.
  struct assembling {
    std::string_view gather, gathers;
  };
  /// `bytes`: of the device.
  gpu_memory(runtime_state& rt, gpu_lanes& lanes, assembling kernels, std::atomic<std::uint64_t>& bytes_moved,
             std::uint64_t bytes)
      : rt_(rt), lanes_(lanes), kernels_(kernels), bytes_moved_(bytes_moved), bytes_(bytes) {}

  /// Another device, or none; what was in the memory of the last one must have been forgotten.
  void use(devices::accelerator*);

  // ---- a task -------------------------------------------------------------------------------------------------------
  /// Room for everything it needs, or for nothing: false.
  bool reserve(gpu_job&);
  /// Enqueues copies in, gives the job its views, and has its lane wait for what it uses.
  void fill_in(gpu_job&);
  /// Gives a call of a graph, of which the job holds all tiles, its views. Enqueues, on the job's lane, what puts
  /// together what it reads otherwise than as one tile.
  void show_call(const task_record& call, const gpu_job&, gpu_context&);
  /// Device memory for a routine, kept until the task ends; null: no room.
  void* scratch(gpu_job&, std::size_t bytes);
  /// Enqueues copies of what its body updates in place, for another attempt. Throws error(out_of_memory).
  void keep_updates(gpu_job&);
  /// Enqueues the way back.
  void put_updates_back(gpu_job&);
  /// Notes that the job's kernel has been enqueued: what it writes is the newest version to tasks enqueued behind it.
  void note_launched(gpu_job&);
  /// Enqueues what goes to the host; false: nothing does.
  bool send_out(gpu_job&);
  /// All of it has ended well: what came out goes where it belongs.
  void put_in_place(gpu_job&);
  /// Gives back what the task holds.
  void let_go(gpu_job&);
  /// Bytes that the task needs in the device's memory at once.
  static std::uint64_t bytes_of(const task_record&);
  /// Bytes of each window of a call at most, if the task is the run of a graph.
  static std::span<const std::uint64_t> windows_of(const task_record&);

  /// Copies in that have ended since the last call: calls f(space they came from, bytes, number, ticks at which the
  /// first was enqueued) for each row of them over one link.
  template <class F>
  void each_arrival(F&& f) {
    while (!arriving_.empty() && lanes_.has_reached(lane_in, arriving_.front().until)) {
      const memory_space from = arriving_.front().from;
      const std::uint64_t begun = arriving_.front().begun;
      std::uint64_t bytes = 0, number = 0;
      do {
        ++number;
        bytes += arriving_.front().bytes;
        arriving_.pop_front();
      } while (!arriving_.empty() && arriving_.front().from == from &&
               lanes_.has_reached(lane_in, arriving_.front().until));
      f(from, bytes, number, begun);
    }
  }

  // ---- loans.cpp: tiles that are lent, and those that others lend ----------------------------------------------
  void know_peers(std::span<const gpu_peer> p) { peers_ = p; }
  /// The tile's bytes are on their way here.
  bool is_coming(const array_core&, std::uint32_t tile);
  /// Opens the loan if the tile is here, else calls it back.
  void lend(const std::shared_ptr<peer_loan>&);
  /// Before the copy goes or is filled anew. False: another device uses it.
  static bool take_back(logic::replica&);
  /// Tells the devices that use lent tiles that the memory is about to go.
  void break_loans();
  /// All that the task is lent, until it lets go; false: the lender wants it back.
  static bool begin_loans(gpu_job&);
  /// `well`: the task was launched and has no error; else the loans of tiles that it was to replace are withdrawn.
  static void end_loans(gpu_job&, bool well);
  /// Nothing it uses is still being copied from a lender of somebody else.
  static bool may_start(const gpu_job&);
  /// The task has ended, and what it has written takes the place of what it was lent; false: a lender has failed
  /// before, and its result is of no use.
  static bool settle_loans(gpu_job&);
  /// Marks the copies that the task has fetched from a lender that failed as empty.
  static void spoil(gpu_job&);
  std::uint64_t bytes_from_peers() const { return bytes_from_peers_.load(std::memory_order_relaxed); }

  // ---- copies -------------------------------------------------------------------------------------------------------
  logic::replica* find(const array_core&, std::uint32_t tile);
  /// More was taken since the last call, and more than half of the memory is.
  bool fills_up() { return std::exchange(fills_up_, false); }
  /// The next one to go when room is needed; null if all are in use.
  logic::replica* victim(const logic::lookahead_queue&);
  /// Bytes for which there would have to be room before the task could start, roughly.
  std::uint64_t missing_bytes(const task_record&);
  /// On their way home; afterwards they may go.
  std::uint64_t leaving_bytes() const { return leaving_bytes_; }
  /// Some copies are newer than placement knows, or lent and in use; they may go once it does, or once they are not.
  bool has_unaccounted() const;
  void drop(const logic::replica&);
  /// Enqueues the copy to the host; the job ends with it.
  void send_home(logic::replica&, gpu_job&);
  /// Enqueues the copy of a part of it to the box's memory; the job ends with it.
  void send_part_home(logic::replica&, home_box&, gpu_job&);
  void note_sent_home(gpu_job&);
  template <class F>
  void each(F&& f) {
    cache_.each(f);
  }
  /// The device is gone, and its memory.
  void forget_all();

  // ---- any thread ---------------------------------------------------------------------------------------------------
  /// The size of the device's memory, also while no device is used.
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t bytes_out() const { return bytes_out_.load(std::memory_order_relaxed); }
  /// The most of the device's memory that was ever in use.
  std::uint64_t used_max() const { return used_max_.load(std::memory_order_relaxed); }

 private:
  logic::replica* hold(gpu_job&, int access, array_core&, std::uint32_t tile, bool written, bool whole);
  bool reserve_part(gpu_job&, int access);
  bool reserve_windows(gpu_job&);
  void drop_windows(graph_windows&);
  bool drop_idle_windows();
  void forget_old_windows();
  bool reserve_sources(gpu_job&, const access&, gpu_job::part&);
  void await_in(gpu_job&, devices::ticket until) const;
  void bring_in(const gpu_job&, logic::replica&);
  static std::shared_ptr<peer_loan> loan_of(const gpu_job&, const array_core&, std::uint32_t tile);
  void copy_lent(const peer_loan&, devices::device_pointer to, const devices::strides&, const logic::box4& what);
  static void view_tile(const access&, int number, const logic::replica&, gpu_context&);
  bool view_inside_tile(gpu_job&, const gpu_job::part&);
  void view_in_place(const task_record&, int access, const logic::piece&, const logic::replica&, gpu_context&);
  void show_window(const task_record& call, int access, void* memory, int lane, gpu_context&);
  void assemble_from_host(gpu_job&, gpu_job::part&);
  void start_assembly(gpu_job&, std::size_t part);
  void finish_assembly(gpu_job&);
  static devices::gather_piece gathered(const logic::box4& to, const logic::piece&, const logic::replica&);
  void count(std::uint64_t bytes) { bytes_moved_.fetch_add(bytes, std::memory_order_relaxed); }
  void count_out(std::uint64_t bytes) {
    count(bytes);
    bytes_out_.fetch_add(bytes, std::memory_order_relaxed);
  }
  void note_arrival(memory_space from, std::uint64_t bytes);
  void* allocate(int lane, std::size_t bytes);

  runtime_state& rt_;
  gpu_lanes& lanes_;
  const assembling kernels_;
  std::vector<devices::gather_piece> to_gather_;  // of the part that is put together; kept for its memory
  std::atomic<std::uint64_t>& bytes_moved_;
  const std::uint64_t bytes_;
  bool fills_up_ = false;
  std::uint64_t writes_ = 0;
  std::uint64_t leaving_bytes_ = 0;
  std::atomic<std::uint64_t> bytes_out_{0}, used_max_{0};
  devices::accelerator* device_ = nullptr;
  logic::residency cache_;
  std::unordered_map<const recorded_graph*, graph_windows> windows_;
  std::vector<logic::piece> pieces_;
  struct arrival {
    devices::ticket until;
    std::uint64_t bytes, begun;
    memory_space from;
  };
  std::deque<arrival> arriving_;  // copies in under way
  std::span<const gpu_peer> peers_;
  std::atomic<std::uint64_t> bytes_from_peers_{0};
};

}  // namespace troupe::detail
