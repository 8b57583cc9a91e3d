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
/// - `"cpu"` is slots of a core group: 1 unless said; 0 for a task that only waits (it then runs on a thread beside the
///   workers); n for one with threads of its own. It begins once n slots of one group are free, which tasks of one slot
///   leave to it (see below); more than the largest group has is `error(no_resource)`. It counts on core groups only.
/// - `"gpu"` is whole devices of `options::devices`, for a body on a core that drives them itself:
///   `task_context::devices()` says which. No two tasks have the same one at a time; kernels of the runtime still run
///   there. `{"gpu", resource::all}`: every one. A fraction is `error(not_supported)`.
/// - Every other name is configured in `options::resources`, here or on a node that is there: a quantity is each node's own,
///   and the task runs where it holds it, where the largest part of it is left. If that node goes and no other one has so
///   much, the task fails with `error(no_resource)`.
/// Of what a name, a card or a core group has too little, tasks get it in order of priority, equal ones as they became
/// ready. Who has to wait for more than is free has a reservation: others pass if they are predicted to have ended when it
/// begins.
struct resource {
  static constexpr double all = std::numeric_limits<double>::infinity();

  std::string name{};
  double amount = 1;
};

/// An accelerator to use.
struct device_use {
  /// A kind, "cuda", "hip", "opencl" or "sim" (a GPU in software, for tests and for trying things out): all devices of
  /// that kind. "gpu": all of CUDA and HIP. "all": all but sim. Or one of them: "cuda:0". The same one may be named
  /// twice: it is then two devices with memory of their own.
  std::string name{};
  /// Of its memory, so many bytes at most; 0: all it has to give.
  std::uint64_t memory_bytes = 0;
  /// Kernels that run side by side.
  int lanes = 4;
  /// A task that takes longer on the device counts as hung, and the device as failed; 0: none does. On CUDA, HIP and
  /// OpenCL a kernel cannot be stopped: the device then stays closed until it has ended, and the futures of the tasks that
  /// were under way or waiting there, the hung one's among them, wait until then.
  std::chrono::milliseconds deadline{0};
  /// Devices of one group are one card to tasks that ask for several (see `options::card_wait`). Empty: those that are
  /// the same physical device are.
  std::string group{};
};

/// How a runtime is built. Read once, by the constructor.
struct options {
  /// Worker threads over all core groups, at least one for each. 0: as many as this process may use (affinity mask and cgroup quota).
  int threads = 0;
  /// Core groups; each is one executor, named `cpu:0`, `cpu:1`, ... Workers are dealt out evenly; at least one each.
  int core_groups = 1;
  /// Accelerators to use beside the cores. A named device that is not there is `error(no_executor)`, saying why; a kind
  /// of which there is none is not. Empty: what the environment variable TROUPE_DEVICES names when the runtime is
  /// constructed, separated by commas ("sim,opencl:0"), if it is set. {{"none"}}: none, whatever it says.
  std::vector<device_use> devices{};
  /// Where a runtime with devices keeps what it has measured, for the next one: the speed of each device's link, which
  /// is measured at the first start (50 ms a device), and the times of kernels that run on devices. A folder; empty:
  /// `$XDG_CACHE_HOME/troupe`, or `$HOME/.cache/troupe`. "none": nothing is measured at start, read or written; every
  /// cost is learned from the tasks. What cannot be read or written is no error.
  std::string cost_cache{};
  /// Folders in which the plugins of HIP, OpenCL and UCX (`libtroupe_*.so`) are looked for before the usual places: beside
  /// the library or the program, in the library folder next to it, and where the library was installed. Empty: those of the
  /// environment variable TROUPE_PLUGINS, separated by colons. What is loaded stays loaded, for the whole process.
  std::vector<std::string> plugin_folders{};
  /// Kernels as text compare every element they touch by `GPU_AT1` to `GPU_AT4` with the box of its array; a task that
  /// goes outside fails with `error(out_of_bounds)`, naming kernel, argument, index and box. `sim` always does. On the
  /// others it makes kernels slower, and recorded graphs are not replayed as one call.
  bool check_kernels = false;
  /// Off: a device that has never run a kernel is given a task of it, to find out how fast it is, where nobody has to wait
  /// for that: once the kernel has been compiled in advance, and while the cores have enough other tasks of it or the trial costs
  /// little beside what such tasks have taken so far. And a device that computes on the cores (sim, OpenCL on a CPU) gets
  /// only tasks that take less of the cores' time there. On, also by the environment variable TROUPE_EAGER_DEVICES=1: devices
  /// get tasks as soon as there are any, and these wait for the compiler. No matter where only devices may run a task.
  bool eager_devices = false;
  /// Host memory for tiles of arrays, in bytes, at most; 0: no limit. Tiles that no task uses and that were used longest
  /// ago go to `spill_directory` and come back when they are needed. A call whose own tiles take more is
  /// `error(out_of_memory)` at once, also a host view. Memory of the caller (`adopt`, `borrow`), private partials of
  /// reductions, assembled windows and what `retries` keeps do not count.
  std::uint64_t memory_bytes = 0;
  /// With devices that gain by it (CUDA, HIP): host memory for tiles of arrays is pinned, so that copies run at the full
  /// speed of the link, so many bytes at most, and never more than half of this machine's memory or than `memory_bytes`.
  /// Pinned memory is given back when nothing has happened for a while. What finds no room in it, memory of the caller,
  /// and everything where this is 0, is copied in pieces through a few pinned buffers of the device: slower, since a
  /// core copies it once more.
  std::uint64_t pinned_bytes_max = std::numeric_limits<std::uint64_t>::max();
  /// Where tiles go for which `memory_bytes` has no room: one file without a name, gone with the runtime. Empty: nowhere,
  /// what does not fit is `error(out_of_memory)` in the task. A directory that is missing or not writable is
  /// `error(io_failed)` from the constructor. Not looked at without `memory_bytes`.
  std::string spill_directory{};
  /// Bind each worker to one core.
  bool bind_threads = false;
  /// Chrome/Perfetto trace written here at shutdown; empty: none.
  std::string trace{};
  /// Tasks spawned and not finished, at most. A spawning thread beyond this blocks before it hands its task over (a task
  /// never does).
  std::size_t tasks_in_flight_max = 65536;
  /// Named quantities that tasks may ask for, for instance `{{"io", 50}}`.
  std::vector<resource> resources{};
  /// A task that asks for several devices, not more than one card has (see `device_use::group`), gets them on one card.
  /// If none is free it waits for one so long, then takes what is free on several.
  std::chrono::milliseconds card_wait{1000};
  /// How long the destructor lets tasks finish before it abandons them.
  std::chrono::milliseconds shutdown_timeout{10'000};
  /// How long a thread without work looks for some before it sleeps.
  std::chrono::microseconds spin{20};
  /// Threads kept for tasks that wait inside (`future::get` in a body, `yield_core`) or need no slot, at most. More are made,
  /// one at a time, while every other thread waits; they end again. Where the system gives none, such bodies wait for ever.
  int spare_threads_max = 256;
  /// A thread that waits without a limit for a task's future runs that task itself if it is ready, no worker has taken
  /// it yet and a worker sleeps, whose slot it borrows meanwhile: never more bodies at once than workers. Saves two
  /// thread switches. Off: bodies run on the workers' own threads only.
  bool waiting_thread_helps = true;
  /// Placement decisions kept for `explain`, at most; older ones are forgotten.
  std::size_t decisions_kept = 4096;
  /// Work handed to an executor ahead of time, at most; the rest stays free to go elsewhere.
  std::chrono::microseconds window{1000};
  /// Other nodes to work with; none unless it has a name.
  cluster_options cluster{};
};

/// What may be said about one array.
struct array_options {
  /// 2: of what other nodes compute of it, each tile is brought to the node that made the array soon after it has been
  /// written, so that it is in two places whenever it is left alone, and a node that dies costs nothing but what it was
  /// at. 1: it stays where it was written until it is needed, and is computed again if it is lost; see
  /// `cluster_options::replay_max`. What the program put in is on this node in any case, and so is what a call has
  /// written that must not be repeated (`kernel::once`), when it has ended.
  int replicas = 1;
};

/// What may be said about one call. Everything has a default; name what differs.
struct task_options {
  /// Executors that may run the task. Intersected with the kernel's bodies.
  scope where{};
  /// Ready tasks of higher priority start first; equal ones in program order.
  int priority = 0;
  /// Quantities held while the body runs, on top of those declared on the kernel.
  std::vector<resource> resources{};
  /// How often a failing body is tried again. What it updates in place is put back first.
  int retries = 0;
  /// The name in errors, traces and `explain`; empty: the kernel's.
  std::string name{};
  /// Asks the task to stop: a queued one never starts, a running one sees `task_context::stop_requested()`.
  std::stop_token stop{};
  /// The task is asked to stop so long after the call; 0: never. One that has not begun ends with `error(timed_out)`. A
  /// body that runs sees `task_context::stop_requested()`; what it does then counts: if it returns the task has run, if it
  /// throws the task ends with `task_failed` and is not tried again, whatever `retries` says. A node that has the task and
  /// has not told its end within another second is given up, as if it were gone: its other tasks run elsewhere, and this
  /// one ends with `error(timed_out)`, of a `once` kernel with `error(unknown_outcome)`.
  std::chrono::milliseconds deadline{0};
  /// How long the call waits where nobody is there who may run the task, or who has what it asks for: a node that is to
  /// come, or to come back under the same name, may. Then, and at once if it is 0, the call is `error(no_executor)` or
  /// `error(no_resource)`.
  /// The calling thread is blocked meanwhile. Not looked at by a runtime that is no node.
  ///
  /// A task whose node goes after the call, before it has ended there, waits as long, from when nobody is left who may
  /// run it; no thread is blocked. Then, and at once if it is 0, it ends with `task_failed`, which names the node.
  std::chrono::milliseconds executor_wait{0};
};

}  // namespace troupe
