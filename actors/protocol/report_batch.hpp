// What this file is for: all that an executor has to tell placement at one time, as one message.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

namespace troupe::detail {

struct array_core;
struct task_record;

/// A tile that a task still needs, and that a node has overwritten after the task came back from there.
struct overwritten_input {
  const task_record* task;
  array_core* array;
  std::uint32_t tile;
};

/// Events at an executor since it last told placement. The executor fills it under its own lock, takes it
/// out and hands it to placement::report without that lock; placement knows in which order its parts have to be
/// accounted for. Owns nothing that it points to.
struct report_batch {
  using tile = std::pair<array_core*, std::uint32_t>;

  /// Tasks whose bodies have returned, thrown, or were never run.
  std::vector<task_record*> done;
  /// Tasks that the executor could not run; their phase is waiting again (not claimed).
  std::vector<task_record*> returned;
  /// Tasks among `returned` that are not to come to this executor again, with the error that each fails with if no
  /// other executor can take it, or null.
  std::vector<std::pair<task_record*, std::exception_ptr>> refusals;
  /// Tiles that a task among `returned` still needs, and that the executor has overwritten since.
  std::vector<overwritten_input> overwritten_inputs;
  /// Tiles whose only copies the executor has destroyed, while it goes on; `lost_why` says how.
  std::vector<tile> lost;
  std::exception_ptr lost_why;
  /// Tasks that need a task_record::extra, which is allocated under placement's turn.
  std::vector<task_record*> need_extra;
  /// The end of the executor's memory: the only copies of these tiles were in it. `for_good`: it gets no more tasks.
  struct failure {
    std::vector<tile> lost;
    std::exception_ptr why;
    bool for_good = false;
  };
  std::optional<failure> failed;

  /// Returns what is in the batch and empties it. As much room is kept for tasks that will be done as these took.
  report_batch take() {
    report_batch all = std::exchange(*this, {});
    done.reserve(all.done.size());
    return all;
  }
};

}  // namespace troupe::detail
