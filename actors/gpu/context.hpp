// What this file is for: how a kernel on an accelerator gets its arguments.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <span>
#include <string>
#include <vector>

#include <troupe/detail/task.hpp>

#include "devices/accelerator.hpp"

namespace troupe::detail {

/// Collects the arguments of one call: views whose data is device memory, scalars as bytes.
class gpu_context final : public task_context, private argument_sink {
 public:
  gpu_context(const char* executor, const std::atomic<bool>& stopping) : executor_(executor), stopping_(stopping) {
    sink_ = this;
  }

  void bind(const task_record& t);
  /// Arguments go to this routine, all at once.
  void use(routine_fn f, device_call& call) {
    routine_ = f;
    call_ = &call;
  }
  /// The device's view of access i; it begins `offset` elements after its data.
  void set_view(int access, const raw_view&, index_t offset = 0);
  devices::launch_shape shape(const kernel_text&) const;
  /// Valid until the next bind.
  std::span<const devices::kernel_argument> arguments();

  const char* executor() const override { return executor_; }
  bool stop_requested() const override;
  int attempt() const override { return attempt_; }
  /// The arguments are handed over once more.
  void next_attempt();
  raw_view view_of(int access) override { return views_[static_cast<std::size_t>(access)]; }

 private:
  // As devices/kernels declares it.
  struct gpu_shape {
    std::int64_t lo[rank_max], hi[rank_max], stride[rank_max], offset;
  };
  struct entry {
    std::byte* memory = nullptr;
    std::size_t at = 0, size = 0;  // by value: where in bytes_; an array, size 0: the bytes of an element
  };
  void array(const raw_view&, int rank, std::size_t element) override;
  void value(const void*, std::size_t bytes) override;
  bool wants_tuple() const override { return routine_ != nullptr; }
  void tuple(const void* arguments) override { routine_(*call_, arguments); }

  const char* executor_;
  const std::atomic<bool>& stopping_;
  const task_record* task_ = nullptr;
  routine_fn routine_ = nullptr;
  device_call* call_ = nullptr;
  std::vector<raw_view> views_;
  std::vector<index_t> offsets_;
  std::vector<entry> entries_;
  std::vector<devices::kernel_argument> arguments_;
  std::vector<std::byte> bytes_;
  int next_access_ = 0, attempt_ = 1;
  int items_from_ = 0;  // the work-items stand for: 0 nothing, 1 an array that is read, 2 one that is written
  int rank_ = 1;
  std::array<std::uint32_t, 3> items_{1, 1, 1};
};

}  // namespace troupe::detail
