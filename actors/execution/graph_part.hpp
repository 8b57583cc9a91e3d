// What this file is for: one process's part of a recorded graph that spans several: what comes from the other parts.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A part is a recorded graph of its own, and a run of it is one task of this runtime. Its calls work on private arrays
// (*shadows*). A run puts the memory of the tiles that its task holds into the shadows; other tiles of these have
// memory of their own, for boxes that come from other parts. Between the calls are nodes that send a box to another
// part, and nodes that wait for one: a *crossing* each, numbered alike in all parts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <troupe/detail/task.hpp>

#include "actors/execution/graph_run.hpp"
#include "actors/logic/data/array_core.hpp"
#include "actors/logic/data/view_bytes.hpp"
#include "actors/protocol/node.hpp"
#include "net/transport.hpp"

namespace troupe::detail {

/// The kernel of tasks that run a part of a graph on another node. Its values are the graph's number and the run's.
extern const kernel_info graph_part_kernel;
inline bool is_graph_part(const task_record& t) { return t.kernel && t.kernel->key == graph_part_kernel.key; }

/// Names a part: the node that has recorded the graph, its number there, and the part's among `members`, the nodes that
/// have the parts.
struct part_name {
  node_id owner{};
  std::uint64_t graph = 0;
  std::uint32_t part = 0;
  std::vector<node_id> members{};
};

class graph_part {
 public:
  /// Takes what a run sends. On the threads that run nodes.
  class outlet {
   public:
    virtual void send(const part_name&, std::uint64_t run, std::uint32_t to, std::uint32_t crossing,
                      const net::pieces&) = 0;
    /// The crossing carries nothing, because the calls before it have failed.
    virtual void send_failure(const part_name&, std::uint64_t run, std::uint32_t to, std::uint32_t crossing,
                              const std::exception_ptr&) = 0;

   protected:
    ~outlet() = default;
  };

  /// A tile of a shadow, whose memory a run takes from its task: those of one task in the order of its accesses.
  struct bound_tile {
    array_core* shadow = nullptr;
    std::uint32_t tile = 0;
    std::optional<logic::box4> box{};  // the task reads nothing but this box of the tile; the boxes of a tile follow
                                       // each other
  };

  /// Takes over a reference of each shadow.
  graph_part(part_name, outlet&, std::vector<array_core*> shadows, std::vector<bound_tile>);
  ~graph_part();
  graph_part(const graph_part&) = delete;
  graph_part& operator=(const graph_part&) = delete;

  const part_name& name() const { return name_; }

  // ---- while the part is built --------------------------------------------------------------------------------------

  /// Makes the record of a node that sends a crossing, or waits for it. Its access, if a box travels, is to be filled in
  /// by the caller: the whole box, inside one tile. `bytes`: of the box.
  task_record* make_sender(runtime_state&, std::uint32_t crossing, std::uint32_t to);
  task_record* make_receiver(runtime_state&, std::uint32_t crossing, std::uint32_t from, std::size_t bytes);
  /// Makes the record of a node that fills a box with one element (its access writes), or adds a box to another by an
  /// operator (its accesses read and update). The accesses are to be filled in by the caller.
  task_record* make_filler(runtime_state&, const std::array<std::byte, fill_bytes_max>& element);
  task_record* make_merger(runtime_state&, combine_fn);
  /// Says which nodes of the finished graph these are; called once.
  void take_nodes(const recorded_graph&);
  bool is_receiver(const task_record&) const;

  // ---- on the thread that runs the part's task ----------------------------------------------------------------------

  /// Binds the task's memory to the shadows and takes what has come for the run already. `call` wakes a thread for nodes
  /// that have become ready, on any thread. Throws error(protocol_error) if the task holds other tiles than the part
  /// has.
  void begin(graph_run&, task_record&, std::function<void()> call);
  /// Undoes that; no node is left.
  void end() noexcept;
  /// Notes that a node of the run in progress is left out, as a call before it has failed: other parts are told.
  void left_out(std::uint32_t node);

  // ---- any thread ---------------------------------------------------------------------------------------------------

  /// Takes what another part has sent; once for each run and crossing, the rest is ignored. Null: it has not failed.
  /// Throws error(protocol_error) for a crossing that does not lead here, or bytes of another size.
  void arrive(std::uint64_t run, std::uint32_t crossing, std::vector<std::byte> bytes, std::exception_ptr failure);
  /// Returns the size of a crossing's box, and the node that sends it. Throws as `arrive`.
  std::size_t bytes_of(std::uint32_t crossing) const;
  const node_id& sender_of(std::uint32_t crossing) const;
  /// Notes that a part does not run, or has failed: what it has not sent yet will not come.
  void lost(std::uint64_t run, std::uint32_t part, const std::exception_ptr& why);
  /// Notes that one of the parts is gone: this run and all later ones fail.
  void break_off(const std::exception_ptr& why);

  /// Runs that other parts may be ahead of this one, at most; the owner starts no more of them at once.
  static constexpr std::uint64_t runs_ahead = 4;

 private:
  struct incoming {
    std::uint32_t crossing = 0, from = 0, node = 0;
    std::size_t size = 0;
    const task_record* task = nullptr;
    bool is_here = false;  // in the run in progress
    std::vector<std::byte> bytes;
  };
  struct outgoing {
    std::uint32_t crossing = 0, to = 0;
    const task_record* task = nullptr;
  };
  struct arrival {
    std::vector<std::byte> bytes;
    std::exception_ptr failure;
  };
  struct node_body;
  static const task_ops sender_ops, receiver_ops, filler_ops, merger_ops;

  task_record* make_node(runtime_state&, std::uint32_t index, const task_ops&);
  void send(std::uint32_t index, task_record&, task_context&);
  void put(std::uint32_t index, task_record&, task_context&);
  void fill(std::uint32_t index, task_record&, task_context&) const;
  void merge(std::uint32_t index, task_record&, task_context&) const;
  void bind(task_record&);
  void use_copy(const home_box&, std::size_t first, const logic::box4&);
  void unbind() noexcept;
  // With the lock.
  const incoming& incoming_of(std::uint32_t crossing) const;
  void deliver(incoming&, arrival);
  void forget_before(std::uint64_t run);

  const part_name name_;
  outlet& outlet_;
  const std::vector<array_core*> shadows_;
  const std::vector<bound_tile> bound_;
  std::vector<view_bytes> copies_;  // memory for tiles whose boxes the task has been given in copies, by `bound_`
  std::vector<incoming> in_;
  std::vector<outgoing> out_;
  std::vector<std::array<std::byte, fill_bytes_max>> fills_;
  std::vector<combine_fn> merges_;
  std::unordered_map<std::uint32_t, std::uint32_t> in_of_crossing_, out_of_node_;

  std::mutex lock_;  // the next ones, and `is_here` and `bytes` of incoming ones until their nodes are ready
  graph_run* run_ = nullptr;
  std::uint64_t number_ = 0, newest_ = 0;  // of the run in progress or the last one; of any that was heard of
  std::function<void()> call_;
  std::map<std::pair<std::uint64_t, std::uint32_t>, arrival> early_;            // by run and crossing
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::exception_ptr> lost_;  // by run and part
  std::exception_ptr broken_;
};

}  // namespace troupe::detail
