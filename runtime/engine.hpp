// What this file is for: the engine behind a runtime: builds its parts, holds them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <troupe/options.hpp>
#include <troupe/report.hpp>

#include "actors/control/control.hpp"
#include "actors/core_group/core_group.hpp"
#include "actors/execution/open_runs.hpp"
#include "actors/gpu/gpu.hpp"
#include "actors/memory/runtime_state.hpp"
#include "actors/memory/spill_disk.hpp"
#include "actors/protocol/load_report.hpp"
#include "actors/protocol/wait_table.hpp"
#include "runtime/cluster/node_set.hpp"
#include "runtime/costs/known_costs.hpp"
#include "runtime/deadlines.hpp"
#include "runtime/devices/accelerators.hpp"
#include "runtime/environment.hpp"
#include "runtime/kernel_table.hpp"
#include "runtime/open_views.hpp"

namespace troupe::detail {

namespace stage {
class crew;
class holders;
}

class engine : public std::enable_shared_from_this<engine> {
 public:
  explicit engine(const options&, runtime_environment = {});
  ~engine();
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;

  /// Starts the runtime; second half of construction: threads keep the engine alive, so it must be owned first.
  void start();
  shutdown_report shutdown(std::chrono::steady_clock::time_point deadline);
  /// Throws runtime_stopped in a child of the process that the runtime was made in.
  void check_process() const {
    if (!state_->birth.is_here()) refuse_child();
  }
  runtime_report report();
  /// Returns how much work this node has; see placement::load.
  load_report load(std::span<const task_listener* const> owners);
  int threads() const;
  /// Returns the number of bodies that all core groups run at once.
  int slots() const;
  /// Has a stream end with the runtime.
  void add_stream(const std::shared_ptr<stage::crew>&);
  /// Returns where spans of the trace go; null: there is no trace. It is there as long as workers are.
  trace_sink* sink() { return control_ ? control_->sink() : nullptr; }
  /// Of the streams that exist, in the order in which they were added.
  /// One that was added. Whoever looks for it takes a pass first.
  struct known_stream {
    std::shared_ptr<stage::holders> held_by;
    std::weak_ptr<stage::crew> of;
  };
  std::vector<known_stream> streams();
  /// True once the runtime is being shut down: what would go on for ever ends now.
  bool is_stopping() const { return is_stopping_.load(std::memory_order_acquire); }

  const options& settings() const { return options_; }
  /// Returns the kinds of devices that were named and do not exist, with the reason.
  const std::vector<std::string>& absent_devices() const { return absent_devices_; }
  runtime_state& state() { return *state_; }
  placement& placement_actor() { return *placement_; }
  wait_table& board() { return board_; }
  open_views& views() { return views_; }
  kernel_table& kernels() { return *kernels_; }
  /// Returns the node's part in its cluster; null: it is in none.
  const node_set* others() const { return nodes_.get(); }
  node_set* others() { return nodes_.get(); }
  const runtime_environment& around() const { return around_; }
  const std::shared_ptr<deadlines>& timers() const { return timers_; }
  /// Returns the actor system; null in imagined time.
  control* supervision() { return control_.get(); }
  // For tests of failures.
  const std::vector<std::shared_ptr<core_group>>& groups() const { return groups_; }
  const std::vector<std::shared_ptr<gpu>>& gpus() const { return gpus_; }
  disk_thread* disk() const { return disk_.get(); }
  bool help_with(task_record&, const std::function<void()>& begin);
  /// Makes the thread that holds it, which waits outside all bodies, look after the devices; see gpu::drive.
  class device_watch {
   public:
    explicit device_watch(engine& the_engine) : gpus_(the_engine.gpus_) {
      for (const auto& g : gpus_) g->watch();
    }
    ~device_watch() { end(); }
    void end() {
      if (std::exchange(ended_, true)) return;
      for (const auto& g : gpus_) g->unwatch();
    }
    device_watch(const device_watch&) = delete;
    device_watch& operator=(const device_watch&) = delete;
    bool look() {
      bool any = false;
      for (const auto& g : gpus_) any = g->drive() || any;
      return any;
    }
    bool busy() const {
      return std::any_of(gpus_.begin(), gpus_.end(), [](const auto& g) { return g->busy(); });
    }

   private:
    const std::vector<std::shared_ptr<gpu>>& gpus_;
    bool ended_ = false;
  };

 private:
  [[noreturn]] static void refuse_child();
  void build();
  bool is_waited_for() const;
  void ring();
  void start_control();
  void do_without_control();
  void supervise(const std::shared_ptr<actor>&);
  void stop_streams();
  void end_because(const std::string& actor, const std::exception_ptr& why);
  void add_groups();
  void add_gpus();
  void pin_tiles(const std::vector<found_accelerator>&);
  void measure(std::unique_ptr<devices::accelerator>&, memory_space);
  struct opened_gpu;
  void connect(opened_gpu&, opened_gpu&);
  void keep_costs() noexcept;
  void add_disk();
  shutdown_report shut_down(std::chrono::steady_clock::time_point deadline);
  template <class Executor>
  bool leave_behind(Executor&, shutdown_report&);
  void resume_abandoned() noexcept;

  const options options_;
  std::vector<std::string> absent_devices_;
  const runtime_environment around_;
  const std::unique_ptr<runtime_state, void (*)(runtime_state*)> state_;  // first made, last given up
  wait_table board_;
  open_runs runs_;  // of recorded graphs
  open_views views_;
  const std::unique_ptr<placement> placement_;
  const std::shared_ptr<kernel_table> kernels_ = std::make_shared<kernel_table>();  // also the link's
  const std::shared_ptr<deadlines> timers_;                                         // also of tasks that have one
  std::unique_ptr<control> control_;                                                // null in imagined time
  std::vector<std::shared_ptr<core_group>> groups_;
  std::vector<std::shared_ptr<gpu>> gpus_;
  std::unique_ptr<known_costs> costs_;                       // null: no devices, or not wanted
  std::vector<std::pair<memory_space, std::string>> links_;  // keys of links in costs_
  std::unique_ptr<node_set> nodes_;
  std::shared_ptr<disk_thread> disk_;
  std::mutex shutdown_lock_;
  std::mutex streams_lock_;
  std::vector<known_stream> streams_;
  std::atomic<bool> is_stopping_{false};
  bool down_ = false;
  shutdown_report last_report_;
};

}  // namespace troupe::detail
