// What this file is for: what a node's actor knows of one task that is under way there.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "actors/execution/run_context.hpp"
#include "actors/logic/data/view_bytes.hpp"
#include "actors/memory/host_tiles.hpp"
#include "actors/memory/runtime_state.hpp"
#include "actors/protocol/memory_space.hpp"
#include "actors/wire/task_messages.hpp"
#include "net/transport.hpp"

namespace troupe::detail {

/// A task, a call or an internal one, that has been sent to a node and whose end has not been accounted for. Slots of
/// job_table; guarded by the lock of the node's actor.
struct job {
  /// Memory of this node that the task there writes: a part of an array, or a partial of a reduction.
  struct back {
    int access;
    raw_view to;
    std::size_t element;
    int number;                           // of the access, as it was sent
    bool writing = false;                 // a transfer writes there now
    bool has_come = false;                // the bytes are there
    view_bytes partial;                   // of a reduction: added to the task's own partial at the end
    bool is_update = false;               // the bytes are staged: until all have come, the memory stays as it was, for
    std::unique_ptr<std::byte[]> staged;  // the task may have to run again
    /// Returns where the bytes are to be written as they come.
    net::pieces pieces();
    /// Copies staged bytes to the memory that they are for.
    void take_over();
  };
  /// The state that only jobs with such memory have.
  struct returns {
    returns(runtime_state& rt, const char* name, const std::atomic<bool>& stopping)
        : context(*rt.host, rt, buffers, name, stopping) {}
    scratch buffers;
    run_context context;
    std::vector<back> to;
    std::size_t awaited = 0;
  };
  /// A box that another node has been told to keep for this task, which pulls it there under the number.
  struct loan {
    memory_space lender;
    node_id id;
    std::uint64_t number;
  };

  std::uint64_t id = 0;
  task_record* task = nullptr;       // null: the slot is free
  double begin = 0;                  // of a transfer home, as link_meter::begin_home returned it
  bool begun = false;                // its body has begun, as far as the node was asked to tell
  bool recalled = false;             // the node has been asked to give it back
  int tried = 0;                     // bodies of it that have thrown there, as the node has told before its end
  std::vector<std::uint64_t> wrote;  // the numbers of its writes, in the order of its accesses
  std::uint64_t last_write = 0;      // the number of the last write of all when it was sent, its own included
  std::unique_ptr<returns> data;
  std::shared_ptr<void> stop_watch;
  std::vector<loan> lent;
  std::optional<wire::task_end> end;   // it has ended there, and something of it is still on its way
  std::uint64_t group = 0;             // of its partial, which may come in a sum with others; 0: it comes by itself
  std::uint64_t carried_by = 0;        // the job in whose name the sum has come that has its partial; 0: none
  std::vector<std::uint64_t> carries;  // the others whose partials are in the sum that has come in this one's name
  bool rests = false;                  // nothing of it is to be done there any more: it waits for a sum
  std::size_t copies = 0;              // copies of tiles that it wrote there, which are on their way
  std::vector<saved_tile> brought;     // copies that have come
  std::vector<std::uint32_t> copied;   // accesses, as they were sent, of tiles of which copies are to come with its end
  std::size_t writing = 0;             // transfers that are being written to its memory, which stays until then
  std::size_t pushing = 0;             // transfers sent unasked that are being read from what the task reads
  std::size_t sending = 0;             // transfers that were asked for and are being read from it

  bool is_awaited() const { return writing != 0 || copies != 0 || (data && data->awaited != 0); }
  bool is_touched() const { return writing != 0 || pushing != 0 || sending != 0; }
  /// Returns the memory that the transfer for that access (its number, as sent) writes, or null.
  back* back_of(std::uint64_t access);
};

}  // namespace troupe::detail
