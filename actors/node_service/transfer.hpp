// What this file is for: bytes of another node's array on their way in or out: one host access of this runtime.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "actors/execution/run_context.hpp"
#include "actors/wire/task_messages.hpp"
#include "net/transport.hpp"

namespace troupe::detail {

/// A task of another node that runs here.
struct remote_task {
  std::uint64_t id = 0;
  task_record* task = nullptr;  // null: it has ended, or could not be started
  std::stop_source stop;
  std::vector<std::pair<int, wire::access_descriptor>> returns;  // what goes back, by the number of the access
  std::vector<array_core*> arrays;                               // of those; a reference each
  bool recalled = false;                                         // it goes back, and has not begun
  std::size_t on_their_way = 0;                                  // transfers that it waits for
  std::unique_ptr<wire::task_end> untold;                        // how it ended, told when what it asked for has come
  std::uint64_t group = 0;  // the reduction of its partial, where partials are added up and this is not yet; else 0
};

/// Another node that pulls what is lent here, and its number for that.
struct borrower {
  std::shared_ptr<net::session> line;
  std::uint64_t number = 0, lent = 0;
  logic::box4 where;
};

struct transfer {
  enum class use { in, home, back, lend } what = use::in;
  std::uint64_t number = 0;  // ours of what comes in, the owner's of what goes and of what is lent
  int access = 0;
  remote_task* of = nullptr;  // back; in: a task that was refused waits for it
  task_record* task = nullptr;
  std::size_t element = 1;
  std::uint64_t array = 0;
  wire::gap what_box;            // if it names a node, that one is asked
  std::exception_ptr never;      // in: it will not come; lend: it is not to be pulled
  std::optional<borrower> whom;  // lend: the node that has pulled
  bool open = false, sending = false;
  bool placed = false, writing = false;  // in: its bytes have been given room; they are being written there
  bool is_snapshot = false;              // home: others may go on at once
  raw_view view;
  scratch buffers;
  std::unique_ptr<run_context> context;
};

}  // namespace troupe::detail
