// What this file is for: everything that can be set on a runtime, an array or one task, each with its default.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stop_token>
#include <string>
#include <vector>

#include <troupe/cluster.hpp>
#include <troupe/scope.hpp>

namespace troupe {

/// An amount of a named quantity: `{"io", 1}`.
/// - `"cpu"` is slots of a core group. Default: 1. 0: for a task that only waits; it runs on a thread beside the
///   workers. n: for a task with threads of its own; it begins once n slots of one group are free (see below). More
///   than the largest group has is `error(no_resource)`. It counts on core groups only.
/// - `"gpu"` is whole devices of `options::devices`, for a body on a core that drives them itself:
///   `task_context::devices()` says which. No two tasks hold the same device at a time; kernels of the runtime still
///   run there. `{"gpu", resource::all}`: every device. A fraction is `error(not_supported)`.
/// - Every other name is configured in `options::resources`, on this node or on another one that is connected. Each
///   node has a quantity of its own. The task runs on the node that has the largest part of it left, and holds it
///   there. If that node goes and no other one has as much, the task fails with `error(no_resource)`.
///
/// Tasks that ask for more than is free (of a name, a card or the slots of a core group) get it in order of priority,
/// equal ones in the order in which they became ready. The first of them has a reservation: another task may go first
/// if it is predicted to end before the reservation begins, or if there is enough for both.
struct resource {
  /// As an amount: everything that there is.
  static constexpr double all = std::numeric_limits<double>::infinity();

  std::string name{};
  double amount = 1;
};

/// An accelerator to use.
struct device_use {
  /// The name of one device, "cuda:0", or of several: "cuda", "hip", "opencl" or "sim" (a GPU in software, for tests
  /// and for trying things out) are all devices of that kind, "gpu" all of CUDA and HIP, "all" all except sim. The same
  /// device may be named twice: it is then two devices with memory of their own.
  std::string name{};
  /// Device memory to use, in bytes, at most; 0: all that is available.
  std::uint64_t memory_bytes = 0;
  /// Number of kernels that run side by side.
  int lanes = 4;
  /// Time after which a task on the device counts as hung, and the device as failed; 0: never. On CUDA, HIP and OpenCL
  /// a kernel cannot be stopped: the device then stays closed until the kernel has ended, and the futures of all tasks
  /// that were running or waiting there wait until then.
  std::chrono::milliseconds deadline{0};
  /// Name of a card. To tasks that ask for several devices, devices of one group are one card (see
  /// `options::card_wait`). Empty: entries for the same physical device are one card.
  std::string group{};
};

/// How a runtime is built. Read once, by the constructor.
struct options {
  /// Number of worker threads of all core groups together, at least one for each. 0: as many as this process may use
  /// (affinity mask and cgroup quota).
  int threads = 0;
  /// Number of core groups. Each is one executor, named `cpu:0`, `cpu:1`, ..., with an even share of the workers and at
  /// least one.
  int core_groups = 1;
  /// Accelerators to use beside the cores. A device that does not exist is `error(no_executor)`, with the reason; a
  /// kind of which there is none is no error. Empty: the devices that the environment variable TROUPE_DEVICES names
  /// when the runtime is constructed, separated by commas ("sim,opencl:0"). {{"none"}}: none, whatever the variable
  /// says.
  std::vector<device_use> devices{};
  /// Folder in which a runtime with devices keeps its measurements for the next one: the speed of each device's link,
  /// which is measured at the first start (50 ms a device), and the times of kernels that run on devices. Empty:
  /// `$XDG_CACHE_HOME/troupe`, or `$HOME/.cache/troupe`. "none": nothing is measured at start, read or written; every
  /// cost is learned from the tasks. A file that cannot be read or written is no error.
  std::string cost_cache{};
  /// Folders in which the plugins of HIP, OpenCL and UCX (`libtroupe_*.so`) are looked for before the usual places:
  /// beside the library or the program, in the library folder next to it, and where the library was installed. Empty:
  /// the folders of the environment variable TROUPE_PLUGINS, separated by colons. A loaded plugin stays loaded, for the
  /// whole process.
  std::vector<std::string> plugin_folders{};
  /// Checks every element that a kernel as text touches by `GPU_AT1` to `GPU_AT4` against the box of its array. A task
  /// that goes outside fails with `error(out_of_bounds)`, which names kernel, argument, index and box. `sim` always
  /// checks. On other devices checks make kernels slower, and recorded graphs are not replayed as one call.
  bool check_kernels = false;
  /// Gives devices tasks as soon as there are any; these wait for the compiler. The environment variable
  /// TROUPE_EAGER_DEVICES=1 turns it on too. Off: a device whose speed with a kernel is unknown is tried out only while
  /// no task waits for the result: once the kernel has been compiled in advance, and while the cores have enough other
  /// tasks of it or the trial costs little beside the time that such tasks have taken so far. A device that computes on
  /// the cores (sim, OpenCL on a CPU) then gets only tasks that take less of the cores' time there. Without effect on
  /// tasks that only devices may run.
  bool eager_devices = false;
  /// Limit of host memory for tiles of arrays, in bytes; 0: no limit. Tiles that no task uses and that were used
  /// longest ago go to `spill_directory` and come back when they are needed. A call or a host view whose own tiles take
  /// more than the limit is `error(out_of_memory)` at once. Not counted: memory of the caller (`adopt`, `borrow`),
  /// private partials of reductions, assembled windows, and copies that `retries` keeps.
  std::uint64_t memory_bytes = 0;
  /// Limit of pinned host memory, in bytes; never more than half of this machine's memory, or than `memory_bytes`. With
  /// devices that gain by it (CUDA, HIP) tiles of arrays are in pinned memory, so that copies run at the full speed of
  /// the link. Pinned memory is given back when nothing has happened for a while. Tiles that find no room in it, memory
  /// of the caller, and everything if this is 0, are copied in pieces through a few pinned buffers of the device:
  /// slower, since a core copies them once more.
  std::uint64_t pinned_bytes_max = std::numeric_limits<std::uint64_t>::max();
  /// Directory for tiles for which `memory_bytes` has no room: one file without a name, gone with the runtime. Empty: a
  /// task that does not fit fails with `error(out_of_memory)`. A directory that is missing or not writable is
  /// `error(io_failed)` from the constructor. Ignored without `memory_bytes`.
  std::string spill_directory{};
  /// Binds each worker to one core.
  bool bind_threads = false;
  /// File for a Chrome/Perfetto trace, complete at shutdown; empty: no trace.
  std::string trace{};
  /// Limit of tasks that are spawned and not finished. At the limit a thread that spawns blocks before it hands its
  /// task over, until a quarter of them has finished (rounded down, at least one); `try_spawn_for` goes on with the
  /// first. A task that spawns never blocks, nor does the destructor of what a task has captured or returned, nor a
  /// thread with a host view, in a variable on its own stack, for which such tasks wait; one that has opened the view
  /// and keeps it elsewhere goes on when no task has ended for 20 to 70 ms, up to twice the limit, and from there on
  /// with one task each time.
  std::size_t tasks_in_flight_max = 65536;
  /// Named quantities that tasks may ask for, for instance `{{"io", 50}}`.
  std::vector<resource> resources{};
  /// Time for which a task that asks for several devices waits for devices of one card (see `device_use::group`), if a
  /// card has that many. Afterwards it takes what is free on several cards.
  std::chrono::milliseconds card_wait{1000};
  /// Time that the destructor gives tasks to finish before it abandons them.
  std::chrono::milliseconds shutdown_timeout{10'000};
  /// Time for which a thread without work looks for some before it sleeps; up to five times it if more is likely soon.
  std::chrono::microseconds spin{20};
  /// Limit of threads kept for tasks that wait inside (`future::get` in a body, `yield_core`) or need no slot. While
  /// every other thread waits, one more is made at a time, which ends when nothing waits for it any more. If the system
  /// gives none, such bodies wait for ever.
  int spare_threads_max = 256;
  /// Lets a thread that waits without a limit for a task's future run that task itself, if the task is ready, no worker
  /// has taken it and a worker sleeps, whose slot the thread borrows meanwhile: never more bodies at once than workers.
  /// Saves two thread switches. Off: bodies run on the workers' own threads only, so that one that ends its thread
  /// (pthread_exit) ends no thread of the program.
  bool waiting_thread_helps = true;
  /// Limit of placement decisions that are kept for `explain`; older ones are forgotten.
  std::size_t decisions_kept = 4096;
  /// Queue length of each executor, as predicted run time. Larger: less idle time; smaller: better balance.
  std::chrono::microseconds window{1000};
  /// Other nodes to work with; none unless it has a name.
  cluster_options cluster{};
};

/// Options of one array.
struct array_options {
  /// Number of copies that are kept of each tile, 1 or 2. 2: after another node has written a tile, the tile is copied
  /// to the node that made the array. If the writing node fails, only its running tasks are repeated, and those whose
  /// copy had not arrived. 1: a tile stays where it was written until it is needed, and is computed again if it is
  /// lost; see `cluster_options::replay_max`. Data that the program put in is on this node in any case, and so are the
  /// results of a call that must not be repeated (`kernel::once`), once it has ended.
  int replicas = 1;
};

/// Options of one call. All have defaults; name those that differ.
struct task_options {
  /// Executors that may run the task. Intersected with the kernel's bodies.
  scope where{};
  /// Ready tasks of higher priority start first, however long others wait; equal ones in program order. A body that has
  /// begun goes on. A device or another node first ends what it has been handed.
  int priority = 0;
  /// Quantities held while the body runs, on top of those declared on the kernel.
  std::vector<resource> resources{};
  /// Number of times that a failing body is tried again. Elements that it updates in place are put back first. Not once
  /// the runtime has been shut down: the outcome is the latest failure then.
  int retries = 0;
  /// The name in errors, traces and `explain`; empty: the kernel's.
  std::string name{};
  /// Asks the task to stop: a queued one never starts, a running one sees `task_context::stop_requested()`.
  std::stop_token stop{};
  /// Time from the call after which the task is asked to stop; 0: never. A task that has not begun ends with
  /// `error(timed_out)`. A body that runs sees `task_context::stop_requested()`: if it returns, the task has run; if it
  /// throws, the task ends with `task_failed` and is not tried again, whatever `retries` says. A node that has the task
  /// and has not reported its end within another second is given up as if it were gone: its other tasks run elsewhere,
  /// and this one ends with `error(timed_out)`, or, if the kernel is `once`, with `error(unknown_outcome)`.
  std::chrono::milliseconds deadline{0};
  /// Time for which the call waits while no executor may run the task or has its resources, but a node that joins, or
  /// comes back under the same name, might. Afterwards, and at once if this is 0, the call is `error(no_executor)` or
  /// `error(no_resource)`. The calling thread is blocked meanwhile. Ignored by a runtime that is not a node.
  ///
  /// A task whose node goes after the call, before the task has ended there, waits as long, counted from when no
  /// executor is left that may run it; no thread is blocked. Afterwards, and at once if this is 0, it ends with
  /// `task_failed`, which names the node.
  std::chrono::milliseconds executor_wait{0};
};

}  // namespace troupe
