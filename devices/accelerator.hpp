// What this file is for: the seam of accelerators: memory, lanes, copies, kernels and events of one GPU or its like.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// All calls are made by one thread at a time; only the listener is called from foreign threads. Nothing here blocks
// but opening, closing and `load`. A lane runs what is enqueued on it in order; lanes run beside each other, and only
// `wait` orders one after another. Errors are `troupe::error`; foreign codes never pass:
//   out_of_memory   returned as null by the allocators, never thrown
//   compile_failed  a kernel's text is wrong: the message carries the compiler's log
//   device_failed   the device can do no more until it is opened again (a sticky error): the message says why
//   device_lost     the device is gone
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/box.hpp>
#include <troupe/error.hpp>
#include <troupe/scope.hpp>

namespace troupe::devices {

/// The error of a kernel or launch that this device cannot run for its size or shape, or for want of a compiler:
/// another one may.
class cannot_run : public error {
 public:
  using error::error;
};

struct accelerator_facts {
  std::string name;      ///< "sim:0", "cuda:1": the executor's name
  std::string model;     ///< what the vendor calls the device
  std::string driver;    ///< version of driver and runtime, for people
  std::string identity;  ///< what compiled kernels and measurements depend on: architecture, driver; for cache keys
  std::string bus;       ///< where it is plugged in, on which the speed of copies depends as well; may be empty
  device_kind kind = device_kind::sim;
  int index = 0;                   ///< among the devices of its kind
  std::uint64_t memory_bytes = 0;  ///< that may be used
  bool has_double = true;          ///< kernels may use doubles
  int takes_cores = 0;             ///< of this machine, on which it computes, for each kernel
  bool large_arguments = false;    ///< a kernel's may have more than 1 KiB together, and 4 KiB
  bool captures = false;           ///< what is enqueued can be taken down and enqueued again as one
  int compute_units = 1;
  int lanes = 1;  ///< numbered from 0; all alike
};

/// A position in a lane; lanes count from 1. 0 is the beginning, always reached.
using ticket = std::uint64_t;
using kernel_id = std::uint32_t;
using capture_id = std::uint32_t;

/// Device memory as its device knows it: a pointer, or a handle. Nobody else may look through it.
struct device_pointer {
  void* base = nullptr;
  std::size_t offset = 0;  ///< bytes
};

/// A side of a strided copy: element (i, j, k, l) is at i*stride[0] + j*stride[1] + ... elements from the start.
using strides = std::array<index_t, rank_max>;

/// An argument of a kernel: device memory, or bytes passed by value.
struct kernel_argument {
  bool is_memory = false;
  device_pointer memory{};
  std::span<const std::byte> value{};
  std::size_t element_bytes = 0;  ///< of memory: what its elements have; 0: nobody says
};

/// A kernel as text in the portable dialect (devices/kernels/README.md).
struct kernel_source {
  std::string_view name;  ///< for messages
  std::string_view text;
  std::string_view entry;  ///< the function
  bool checked = false;    ///< set by devices that check; see rtc::with_preludes
};

/// Work-items in all and per group, fastest dimension first. Global sizes are rounded up to whole groups; the kernel
/// checks its bounds.
struct launch_shape {
  std::array<std::uint32_t, 3> items{1, 1, 1}, group{1, 1, 1};
};

class accelerator {
 public:
  /// Closes: gives up what has not run, waits for what does, frees everything. Never throws, never hangs on a device
  /// that is lost.
  virtual ~accelerator() = default;

  virtual const accelerator_facts& facts() const = 0;
  /// Gives up what is under way, which does not end: closing is not to wait for it, where the vendor has a way to stop
  /// it.
  virtual void give_up() noexcept {}
  /// A thread of somebody else is about to make some calls; `leave` with the result restores what it thinks of the
  /// vendor's runtime (its current device).
  virtual int visit() noexcept { return 0; }
  virtual void leave(int) noexcept {}

  // ---- memory -------------------------------------------------------------------------------------------------------
  /// In the order of the lane; other lanes must wait for a later ticket of it. Null: no room. At least 256-aligned.
  virtual void* allocate(int lane, std::size_t bytes) = 0;
  /// Free once the lane has come so far.
  virtual void deallocate(int lane, void*) noexcept = 0;
  /// Returns how much of the memory that may be used is taken now.
  virtual std::uint64_t memory_used() const = 0;
  /// Host memory that copies are fastest from and to. Null: no room.
  virtual std::byte* allocate_pinned(std::size_t bytes) = 0;
  virtual void deallocate_pinned(std::byte*) noexcept = 0;

  // ---- copies: up to 4 dimensions, enqueued; host memory must stay as it is until the lane has passed ---------------
  // Host memory is read at any time from the call on, and may be written as late as when `completed` tells of the
  // ticket. What is not pinned goes through pinned buffers of the device's own: what is small is copied by the threads
  // that call, what is large is not.
  virtual void copy_in(int lane, device_pointer to, const strides&, const std::byte* from, const strides&,
                       const std::array<index_t, rank_max>& count, std::size_t element) = 0;
  virtual void copy_out(int lane, std::byte* to, const strides&, device_pointer from, const strides&,
                        const std::array<index_t, rank_max>& count, std::size_t element) = 0;
  /// Within this device's memory; no overlap.
  virtual void copy(int lane, device_pointer to, const strides&, device_pointer from, const strides&,
                    const std::array<index_t, rank_max>& count, std::size_t element) = 0;
  /// Bytes of an element that `fill` takes: those of a border's constant.
  static constexpr std::size_t fill_max = 32;
  /// `count` elements of 1 to `fill_max` bytes, contiguous, all equal to the bytes at `value` (read at once).
  virtual void fill(int lane, device_pointer to, const std::byte* value, std::size_t element, std::size_t count) = 0;

  // ---- other devices ------------------------------------------------------------------------------------------------
  /// Does this device's part of making copies between its memory and another's direct; both must be asked, each by its
  /// own thread, while both are open. False: this one cannot reach the other's memory, nor is to be asked to.
  virtual bool connect(const accelerator_facts& other) = 0;
  /// From the memory of a device that this one is connected to, never through the host's. All calls are for this
  /// device; what writes there must have ended, and its memory must stay as it is until the lane has passed. Throws
  /// error(bad_argument) where there is no connection.
  virtual void copy_from(int lane, device_pointer to, const strides&, const accelerator_facts& other,
                         device_pointer from, const strides&, const std::array<index_t, rank_max>& count,
                         std::size_t element) = 0;

  // ---- kernels ------------------------------------------------------------------------------------------------------
  /// Kernels note what they touch outside of their arrays, for `complaint`, and `accelerator_facts::captures` is false.
  /// Called before the first is loaded. Without, only the software GPU does, in its own way.
  virtual void check_kernels() {}
  /// Compiles, or finds it compiled on disk; may take seconds. The same source gives the same id. Throws `cannot_run`
  /// where there is no compiler.
  virtual kernel_id load(const kernel_source&) = 0;
  /// Arguments are copied at once. Throws error(bad_argument) for what is wrong anywhere: counts and sizes of
  /// arguments, and sizes of the elements of arrays where the text, or its compiler, tells them; `cannot_run` with that
  /// code for shapes that this device does not have.
  virtual void launch(int lane, kernel_id, const launch_shape&, std::span<const kernel_argument>) = 0;
  /// The number of the last launch; they count from 1. Those that were taken down keep theirs.
  virtual std::uint64_t launched() const { return 0; }
  /// Returns the first access outside of an array that was noticed in the launches [first, last], which have ended,
  /// with kernel, argument, element and box; empty: none. Forgets it. Such a launch may have ended before its time, or
  /// have written into its own arrays what it should not.
  virtual std::string complaint(std::uint64_t, std::uint64_t) { return {}; }
  /// Only where `accelerator_facts::captures`. Launches and copies within the device that are enqueued on the lane from
  /// now on are taken down instead; nothing else may be done with the lane, and nothing loaded.
  virtual void begin_capture(int) { no_capture(); }
  /// Returns what was taken down, to be enqueued as one by `replay`, with the arguments it had. Throws what the device
  /// makes of it; then nothing is kept.
  virtual capture_id end_capture(int) { no_capture(); }
  virtual void replay(int, capture_id) { no_capture(); }
  /// Drops a capture, which may still be under way.
  virtual void drop(capture_id) noexcept {}
  /// Returns what a vendor's library needs to work in a lane: cudaStream_t, hipStream_t, cl_command_queue.
  virtual void* native_lane(int lane) = 0;

  // ---- order --------------------------------------------------------------------------------------------------------
  /// The end of what has been enqueued on the lane. `notify`: the listener is called once it is reached.
  virtual ticket record(int lane, bool notify) = 0;
  /// The last ticket recorded on the lane.
  virtual ticket recorded(int lane) const = 0;
  /// Has what is enqueued on `lane` from now on start after the ticket of `other`.
  virtual void wait(int lane, int other, ticket) = 0;
  /// The last ticket that the lane has reached. Throws device_failed or device_lost.
  virtual ticket completed(int lane) = 0;
  /// Called from any thread, also inside `record`, whenever a ticket with `notify` is reached or the device fails. It
  /// must not call the device. Set once, before the first ticket with `notify`.
  virtual void listen(std::function<void()>) = 0;

 private:
  [[noreturn]] void no_capture() const {
    throw error(errc::not_supported, facts().name + " does not capture what is enqueued");
  }
};

/// Pins host memory where it is, so that copies from and to it run beside everything else at the link's full speed. For
/// all devices of one kind; thread-safe.
class page_pinning {
 public:
  virtual ~page_pinning() = default;
  /// `refused`: the driver says no, also because some of it is pinned already. `was_pinned`: by somebody else, the first
  /// byte and the last. Nothing has changed then.
  enum class outcome { pinned, was_pinned, refused };
  /// Pins the pages that hold the bytes, at least one.
  virtual outcome pin(std::byte*, std::size_t bytes) = 0;
  /// Unpins what `pin` was given. No device may be copying from or to it.
  virtual void unpin(std::byte*) noexcept = 0;
};

/// A way to accelerators: a vendor's runtime.
class accelerator_source {
 public:
  virtual ~accelerator_source() = default;
  virtual device_kind kind() const = 0;
  /// Devices there are; none is no error.
  virtual int count() const = 0;
  /// Why there are none, or what else a person should know: "no driver (35 cudaErrorInsufficientDriver)". May be empty.
  virtual std::string remark() const = 0;
  /// Opens device `index` with so many lanes and at most so much of its memory (0: all it has to give).
  virtual std::unique_ptr<accelerator> open(int index, int lanes, std::uint64_t memory_limit) = 0;
  /// By way of device `index`, which is open as long as anything is pinned. Null: copies gain nothing by it.
  virtual std::unique_ptr<page_pinning> pinning(int index) {
    (void)index;
    return nullptr;
  }
};

}  // namespace troupe::devices
