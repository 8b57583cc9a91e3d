// What this file is for: recorded graphs whose calls run on several nodes: one part for each.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A call belongs to the part of the node that its scope names; a call that may run in several parts, to the one that
// wrote most of what it changes, else to this node's. A tile that a call writes is at home in the part that writes it
// first. A run is one task for each part, which holds the tiles at home there: these tasks have no tile in common that
// one of them writes, so to placement they are independent. What travels between parts within a run goes from node to
// node without this one (actors/logic/data/graph_cut, actors/execution/graph_part).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <troupe/future.hpp>
#include <troupe/options.hpp>

#include "actors/execution/graph_part.hpp"
#include "actors/execution/graph_run.hpp"
#include "actors/protocol/node.hpp"

namespace troupe::detail {

class engine;

struct split_graph {
  struct part {
    std::uint16_t executor = 0;  // of a part on another node
    std::string host{};          // the name of that node
    bool is_empty = true;        // it has no call: no task runs it
    std::shared_ptr<const part_name> name;
    std::shared_ptr<recorded_graph> here;  // null: the part is on another node
    std::vector<access> touched{};         // what a run of it holds, as recorded_graph has it; with references
    std::vector<logic::box4> boxes{};      // of these
    bool has_home = false;                 // it changes some of them
    task_record* last = nullptr;           // its newest run, with a reference; where it has no tile at home
  };

  split_graph() = default;
  split_graph(const split_graph&) = delete;
  split_graph& operator=(const split_graph&) = delete;
  ~split_graph();

  runtime_state* rt = nullptr;
  logic::executor_set here = logic::executor_set::every();  // in the scopes of all calls of this node's part
  std::uint64_t number = 0;
  std::vector<node_id> members;  // by part
  std::vector<part> parts;
  std::size_t calls = 0, edges = 0;
  std::mutex lock;  // the next two, and part::last: runs are submitted one after the other
  std::uint64_t runs = 0;
  std::deque<task_record*> recent;  // joins of the newest runs, each with a reference
};

/// True if a call of the recording can run on other nodes only.
bool leaves_this_node(engine&, const recording&);
/// Splits a recording and defines the parts on their nodes. Throws error(not_supported) for what cannot be split,
/// error(no_executor) where a node does not offer a kernel, error(node_lost) where one has gone. Takes over the tasks
/// of this node's part.
std::shared_ptr<split_graph> split(engine&, recording&);
/// Runs it once. Throws error(no_executor) if the scope of the run leaves out a part.
future<void> run(engine&, const task_options&, const std::shared_ptr<split_graph>&);

}  // namespace troupe::detail
