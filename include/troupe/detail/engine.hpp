// What this file is for: the few functions through which the public templates reach the inside of the library.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not for users. Everything here may be called from any thread unless said otherwise.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>

#include <troupe/detail/task.hpp>

namespace troupe::detail {

struct recording;

/// Where a call goes: straight to placement, or into a graph that is being recorded.
struct target {
  engine* the_engine = nullptr;
  recording* recorded = nullptr;
  bool waits = true;  // at the bound of tasks in flight
};

// Records.
task_record* new_task(engine&);                       // one reference for the runtime, one for the caller
void size_accesses(task_record&, std::size_t count);  // room for more than the inline accesses
void submit(target, task_record*);                    // may block at the in-flight bound; throws runtime_stopped
/// Chunks of one call and their join: all or none. Takes the runtime's reference and, of the chunks, the caller's too.
void submit_all(target, std::span<task_record* const> chunks, task_record* join);
/// Waits until another task may be in flight; false if none may in time. Inside a task, and in a recording: always.
bool wait_for_room(target, std::chrono::steady_clock::time_point);
/// Throws out_of_memory if a machine of this size cannot hold the records of `count` chunks, of which each takes
/// `bytes` beside its record.
void check_chunks(double count, std::size_t bytes);
[[noreturn]] void throw_no_memory();
// In a handler: the error once more, with what is known of the call in front of its text; with the array's name.
[[noreturn]] void throw_of_call(const error&, const task_options*, const kernel_info*);
[[noreturn]] void throw_of_array(const error&, const array_core&);
struct argument_place {
  std::size_t number, of;
};
// A number that the parameter of a kernel does not hold.
[[noreturn]] void throw_lost(const char* kernel, argument_place at, long long value, const char* type);
[[noreturn]] void throw_lost(const char* kernel, argument_place at, unsigned long long value, const char* type);
[[noreturn]] void throw_lost(const char* kernel, argument_place at, double value, const char* type);
/// bad_argument: an extent or a size of chunks that is negative along dimension d.
[[noreturn]] void throw_bad_space(const task_options*, const kernel_info*, int d, index_t extent, index_t chunk);
void discard(task_record*) noexcept;  // never submitted: gives the runtime's reference back
void retain(task_record*) noexcept;
void release(task_record*) noexcept;
region* new_region(engine&);
task_extra& extra_of(task_record&);
void apply(engine&, task_record&, const task_options&);     // resolves scope and resources; throws
void check_kernel(engine&, const task_record&);             // throws no_executor when nothing can run it
const kernel_info* intern(engine&, const kernel_info&);     // the runtime's own copy, by key
void add_join_edge(task_record& chunk, task_record& join);  // before both are submitted
engine& engine_of(const task_record&);                      // throws runtime_stopped when it is gone
/// Checks what the task's kernel requires of the shapes of its arrays; `lists`: how many arrays each of its lists has.
/// Throws error(bad_argument). `check_kernel` does it for kernels without lists.
void check_shapes(const task_record&, std::span<const std::uint32_t> lists);

// Waiting.
bool is_done(const task_record&) noexcept;
void wait(task_record&);                                               // throws would_deadlock
bool wait_until(task_record&, std::chrono::steady_clock::time_point);  // false: not done in time
void throw_error(const task_record&);                                  // if it has one

// Arrays.
struct array_spec {
  int rank = 1;
  std::array<index_t, rank_max> size{1, 1, 1, 1}, tile{1, 1, 1, 1};
  std::size_t element = 1, align = 1;
  std::string name;
  void* adopted = nullptr;  // row-major bytes that the owner keeps alive
  std::shared_ptr<void> owner;
  const void* fill = nullptr;  // one element: every byte is written before first use
  int replicas = 1;
};
inline constexpr std::size_t filled_bytes_max = 256;  // of an element, where there is one
array_core* new_array(engine&, array_spec);
void retain(array_core*) noexcept;
/// Gives a handle back and waits for nothing.
void release(array_core*) noexcept;
/// The same for a handle of the program's: the last one of borrowed memory waits until no task uses that any more,
/// where it may wait.
void release_and_wait(array_core*) noexcept;
/// Gives back what array_core::keep has kept.
void let_go(array_core*) noexcept;
/// While one lives, handles that go on its thread wait for nothing: the runtime destroys what calls captured and
/// returned where it must not wait.
class no_waiting {
 public:
  no_waiting() noexcept;
  ~no_waiting();
  no_waiting(const no_waiting&) = delete;
  no_waiting& operator=(const no_waiting&) = delete;
};
const array_spec& spec_of(const array_core&) noexcept;
/// Returns where an array that is exactly one tile lives; null for other arrays.
const runtime_state* runtime_of_tile(const array_core&) noexcept;
/// An array or future of another runtime was passed.
[[noreturn]] void throw_foreign(const array_core&);
target target_of(array_core&);  // throws runtime_stopped

/// Fills `to` for a box of the array: a whole tile where it is one, else a region. Throws if the array is foreign.
void describe(engine&, access& to, array_core&, access_mode, const std::array<index_t, rank_max>& lo,
              const std::array<index_t, rank_max>& hi, const std::array<index_t, rank_max>& limit_lo,
              const std::array<index_t, rank_max>& limit_hi, border, const void* fill, std::size_t fill_size,
              combine_fn);

/// Throws overlapping_write if the two accesses of the call touch the same elements.
void check_clash(const task_record&, const access&, const access&);
/// The same for all accesses of the call.
void check_clashes(const task_record&);

/// Chunk size for an index space of this extent, where the caller named none.
void choose_chunk(engine&, int rank, const index_t* size, const array_core* output, index_t* chunk);

/// Host access: blocks until granted, gives the view, and must be closed.
struct host_access;
host_access* open_host(array_core&, access_mode, const std::array<index_t, rank_max>& lo,
                       const std::array<index_t, rank_max>& hi, raw_view& view,
                       std::chrono::steady_clock::time_point deadline);  // null: not in time
void close_host(host_access*) noexcept;
/// The view is at this address from now on: in a variable on the stack of this thread, this thread holds it.
void hold_host(host_access*, const void* view) noexcept;

/// Throws overlapping_write if two of the boxes (lo, hi pairs of one array) overlap.
void check_disjoint(const array_core&, int rank, std::span<const std::array<index_t, 2 * rank_max>> boxes);

}  // namespace troupe::detail
