// What this file is for: the task record, the one message that travels from a caller to placement to an executor.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not for users: the templates of the public headers fill it in, and the library's inside works on it. A record is
// 256 bytes, comes from a pool, and is owned by a reference count: one reference for the runtime until the task has
// retired, one for each future. Which thread may touch which field is said at the field.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <troupe/access.hpp>
#include <troupe/box.hpp>
#include <troupe/detail/id_set.hpp>
#include <troupe/device_call.hpp>
#include <troupe/options.hpp>
#include <troupe/shape.hpp>
#include <troupe/task_context.hpp>
#include <troupe/view.hpp>

namespace troupe {

namespace detail {
/// Takes the arguments of a kernel in order, for bodies that are not C++. Scalars are trivially copyable.
class argument_sink {
 public:
  virtual void array(const raw_view&, int rank, std::size_t element) = 0;
  virtual void value(const void*, std::size_t bytes) = 0;
  /// All of them at once, as a std::tuple, for a routine; false: one by one.
  virtual bool wants_tuple() const = 0;
  virtual void tuple(const void*) = 0;

 protected:
  ~argument_sink() = default;
};

class engine;
struct run_gang;
class peer_loan;
struct home_box;
struct array_core;
struct runtime_state;
struct task_record;
struct successor_block;
struct reduction;

/// Whether running a kernel twice is allowed. Known to recovery; the core only keeps it.
enum class purity : unsigned char { pure, idempotent, once };

/// A kernel's body as text.
struct kernel_text {
  const char* text = nullptr;
  const char* entry = nullptr;
  std::array<std::uint16_t, 3> group{};
};

/// A number that its owner writes while others may look at it to see whether it is still the one they remember.
template <class T>
class observed {
 public:
  constexpr observed(T v = {}) noexcept : value_(v) {}
  operator T() const noexcept { return value_.load(std::memory_order_relaxed); }
  observed& operator=(T v) noexcept {
    value_.store(v, std::memory_order_relaxed);
    return *this;
  }
  /// Changes it so that a thread which sees that by `acquire` also sees what this one has done before.
  void release(T v) noexcept { value_.store(v, std::memory_order_release); }
  T acquire() const noexcept { return value_.load(std::memory_order_acquire); }

 private:
  std::atomic<T> value_;
};

/// Facts about a kernel. One per kernel name and signature in a runtime; one per type for closures.
struct kernel_info {
  const char* name = "task";
  std::uint64_t key = 0;      // identifies the kernel to the cost model; 0, closures: its address does
  unsigned char kinds = 1;    // bit per device_kind that has a body
  unsigned char doubles = 0;  // bit per device_kind whose text needs them; the runtime's own copy knows
  purity repeat = purity::pure;
  const resource* resources = nullptr;
  std::size_t resource_count = 0;
  std::array<kernel_text, device_kind_count> texts{};
  std::array<routine_fn, device_kind_count> routines{};  // before texts
  bool portable = false;                                 // its scalars may travel as bytes
  const shown_ids* nodes = nullptr;  // executors that are nodes and offer it; the runtime's own copy knows
  // Rules about its arrays, which are counted without the other parameters.
  std::array<shape_rule, shape_rules_max> shapes{};
  std::uint8_t shape_count = 0;
  std::uint64_t lists = 0;  // bit per parameter that is a list of arrays, counted as the rules count
};

/// The box of one access, where it is not exactly one tile. In coordinates of the array that owns the bytes.
struct region {
  std::array<index_t, rank_max> lo{}, hi{};              // of the view; may reach outside the limits
  std::array<index_t, rank_max> limit_lo{}, limit_hi{};  // the (sub-)array that was passed
  border edge = border::clip;
  alignas(16) std::array<std::byte, fill_bytes_max> fill{};  // a border's constant, or a reduction's identity
  combine_fn combiner = nullptr;
  reduction* partials = nullptr;  // placement fills it in for reductions
  region* next = nullptr;         // in the pool
};

/// Internal modes of an access, beside those of access_mode: how one without an array waits for its task. Of an access
/// that updates a tile, `order` says that what nobody has written of it is not read. Of a host access that writes, `data`
/// says that all of it has a value, which it keeps if the access is never granted.
enum class link_mode : unsigned char { none, data, order };

struct access {
  array_core* array = nullptr;  // null: this access waits for a task
  union {
    region* where = nullptr;  // null: exactly the tile
    task_record* task;        // the task that is waited for; a reference is held
  };
  std::uint32_t tile = 0;
  access_mode mode = access_mode::read;
  link_mode link = link_mode::none;
  std::uint16_t worker = 0;
};

/// The functions of one kind of call; one constant per type.
struct task_ops {
  void (*run)(task_record&, task_context&);    // may throw; stores the result
  void (*drop_body)(task_record&);             // destroys what the body captured; throws what its destructor does
  void (*drop_result)(task_record&) noexcept;  // destroys the result, if there is one
  void* (*result)(task_record&) noexcept;      // where the result is
  kernel_info closure{};                       // for calls without a named kernel
};

/// A listener is told about its tasks by the thread that holds placement's turn, and must not ask placement anything
/// before `after_turn`.
class task_listener {
 public:
  /// Called when a host access may use its view; the listener closes the access by reporting it done.
  virtual void granted(task_record&) = 0;
  /// Called when a body is about to run, on the thread that runs it; only if task_extra::watched is set.
  virtual void began(task_record&) {}
  /// Called when a body has thrown and is tried again, on the thread that runs it.
  virtual void tried(task_record&) {}
  /// Called when a task has run, has failed, or never will run; its data is as others will see it.
  virtual void retired(task_record&) = 0;
  /// Called when the turn has been left in which the listener was told something.
  virtual void after_turn() = 0;

 protected:
  ~task_listener() = default;
};

/// A tile that a node is to get from another one: in which space it is, and which version.
struct tile_source {
  const array_core* array;
  std::uint32_t tile, version;
  std::uint16_t space;
};

/// A copy of what a task has written for one of its accesses, rows packed; empty: not made.
struct written_copy {
  int access = 0;
  std::vector<std::byte> bytes{};
};

/// Values of task_extra::holds_at: the task holds nothing that would bind it to a place, or it holds quantities of this
/// node; other values are the executor, a node, whose quantities it holds.
inline constexpr std::uint16_t holds_nowhere = 0xffff, holds_here = 0xfffe;

/// Members that few tasks need, kept out of the record.
struct task_extra {
  task_options options;
  id_set executors = id_set::every();  // options.where, resolved
  std::uint64_t resolved_at = 0;       // executor_changes then; nodes come and go
  std::exception_ptr refusal;          // of an executor that has no room for it: others may have
  bool refused = false;                // by the one that hands it back
  std::vector<std::pair<std::uint16_t, std::string>> refused_by;  // for explain; placement's
  std::atomic<int> attempt{1};
  int bodies = 0;  // of it that executors here have counted; where there is a listener
  task_listener* listener = nullptr;
  std::shared_ptr<const void> for_listener;  // what the listener keeps with the task; stays until it has retired
  bool watched = false;
  // Since when its deadline has passed, in ticks; 0: it has not. Null: it has none.
  std::shared_ptr<observed<std::uint64_t>> overdue;
  std::uint64_t due = 0;                   // its deadline, in ticks; 0: it has none
  std::shared_ptr<const void> call;        // what was sent to another node, so that it can be repeated
  std::shared_ptr<void> payload;           // recorded graphs
  std::uint64_t run_of_part = 0;           // of a part of a recorded graph: the number of the run
  std::shared_ptr<run_gang> gang;          // of a part where the run began: all of its parts; placement's
  std::shared_ptr<void> stop_watch;        // the callback registered with options.stop
  std::uint16_t holds_at = holds_nowhere;  // where it holds options.resources; placement's, as the next two
  std::uint64_t waits_since = 0;           // for devices, in ticks
  std::vector<held_device> devices;        // before it is sent
  std::vector<std::shared_ptr<peer_loan>>
      loans;                       // tiles that are copied from other devices; set when it is handed over
  std::vector<tile_source> pulls;  // the same between nodes
  std::vector<std::shared_ptr<home_box>>
      home_boxes;                        // parts of tiles that are elsewhere, which it reads here; set as `loans` are
  bool read_elsewhere = false;           // a node runs it, and tasks that read what it writes may run elsewhere
  std::vector<written_copy> written;     // copies that its thread is to make; see execution/written_copies.hpp
  bool no_pulls = false;                 // one of them has failed: what it reads comes from here
  std::uint64_t data_wait_began = 0;     // it waits for bytes since then, in ticks; 0: it does not. Placement's
  float data_wait_ns = 0;                // for so long it has waited for copies of bytes; of a join: the longest chunk
  std::size_t chunks = 0;                // of a join: how many there are
  std::vector<std::uint64_t> chunks_at;  // of them, by executor, have ended there; counted by any thread
};

/// The kinds of tasks. From combine on they are the runtime's own: a gate is what those who read the same tiles wait for
/// instead of the writers of these (logic/data/read_groups.hpp), a transfer makes the host's copy of a tile current
/// (or gives up the device's), a forget frees an array's copies on a device, a spill moves a tile from host memory to
/// the disk, a load brings it back, a lend lets other devices copy a tile from a device's memory, a fetch copies a part
/// of a tile home, a farewell ends when an array of borrowed memory is gone.
enum class task_kind : unsigned char {
  call,
  join,
  host_access,
  graph_run,
  recorded,
  recorded_join,
  combine,
  gate,
  transfer,
  forget,
  spill,
  load,
  lend,
  fetch,
  farewell
};
/// True for tasks that the runtime makes itself, which are not counted.
constexpr bool is_internal(task_kind k) { return k >= task_kind::combine; }

/// True for tasks of a recording or a graph.
constexpr bool is_recorded(task_kind k) { return k == task_kind::recorded || k == task_kind::recorded_join; }

/// In task_record::measured_ns: the task never ran, because another one failed.
inline constexpr float never_ran = -1.0f;

// task_record::marks, by placement: holds resources, was assigned to an executor, its run time was predicted from
// samples; the executor, a device, has it; others may be put behind it there; it was put behind others; it ended before
// they did; it has room in host memory.
inline constexpr std::uint16_t mark_holds_resources = 1, mark_sent = 2, mark_known = 4;
inline constexpr std::uint16_t mark_handed = 8, mark_chain_head = 16, mark_chained = 32, mark_ended_early = 64;
inline constexpr std::uint16_t mark_has_room = 128;
// Bytes of host memory change while it runs, which the log has been told.
inline constexpr std::uint16_t mark_overwrites = 256;
// A host access whose view is open.
inline constexpr std::uint16_t mark_open = 512;
// A task that has come back from an executor: others that hold room there may wait for it.
inline constexpr std::uint16_t mark_came_back = 1024;
/// A task that was given to an executor and waits for its data.
inline constexpr std::uint16_t mark_aside = 4096;
/// A host access that is no longer wanted: it ends when it is granted, and changes nothing.
inline constexpr std::uint16_t mark_given_up = 8192;
/// A chunk of a for_each; the first of its successors is the join.
inline constexpr std::uint16_t mark_chunk = 16384;
/// A call about which placement has nothing to decide when it becomes ready: one executor may run it, its arrays have
/// not left host memory, there is no budget, its options ask for no resources, its time is predicted, and it takes long
/// enough or has few predecessors.
inline constexpr std::uint16_t mark_early = 32768;

// Phases of a task. The thread that moves it from waiting to claimed runs (or cancels) it. Flags beside them: a thread
// waits for it (watched); its runtime was shut down while it ran, which is its outcome whatever its body does then
// (abandoned).
inline constexpr std::uint32_t phase_waiting = 0, phase_claimed = 1, phase_done = 2, phase_mask = 3, phase_watched = 4;
inline constexpr std::uint32_t phase_abandoned = 8;

/// The record of a task; see the head of this file.
struct alignas(64) task_record {
  static constexpr int inline_accesses = 3;
  static constexpr std::size_t storage_size = 56;

  // Owned by placement from submission to retirement, but for what protocol/successors.hpp says.
  observed<std::uint64_t> sequence;  // also looked at through references that may be older than this task
  std::atomic<std::int32_t> pending{0};
  std::atomic<std::uint32_t> successor_count{0};
  std::array<std::uintptr_t, 3> successors{};  // successor::edge
  successor_block* more_successors = nullptr;
  union {
    task_record* next = nullptr;  // in the pool
    std::uint64_t id;             // in use: the sequence number, kept after retirement
  };
  union {
    std::int32_t ahead;      // before it is sent: how many of its unfinished predecessors the device `executor` has
    float predicted_ns = 0;  // from then on
  };
  std::uint16_t executor = 0;
  std::uint16_t marks = 0;

  // Written by the caller before submission, then read-only, but for the atomics, error and measured_ns.
  const task_ops* ops = nullptr;
  const kernel_info* kernel = nullptr;
  task_extra* extra = nullptr;
  access* accesses = nullptr;
  runtime_state* rt = nullptr;
  std::exception_ptr error;  // written by the thread that claimed the task, before it is done
  std::uint16_t access_count = 0;
  task_kind kind = task_kind::call;
  bool body_gone = false;
  float measured_ns = 0;
  std::atomic<std::uint32_t> references{0};
  std::atomic<std::uint32_t> phase{phase_waiting};

  std::array<access, inline_accesses> own_accesses{};
  alignas(8) std::byte storage[storage_size];
};
static_assert(sizeof(task_record) == 256);

/// Returns for how long a task has waited for copies of bytes, in ns; where nothing counts them, as for tasks without
/// options, 0. Of a task that has ended well.
inline float data_wait_ns(const task_record& t) { return t.extra ? t.extra->data_wait_ns : 0; }

}  // namespace detail
}  // namespace troupe
