// What this file is for: a plan: options, arrays and operations of one random program, drawn from a seed; data only.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A client is a thread with arrays and operations of its own; what it does is in program order. One array is common to
// all: everybody adds to it. A plan is drawn anew from its seed and draw_options, the same each time.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "arithmetic.hpp"
#include "mapping.hpp"

namespace mixed {

/// Options of the user who starts it.
struct draw_options {
  std::uint64_t seed = 1;
  int threads = 0;             // 0: drawn
  int core_groups = 0;         // 0: drawn
  int clients = 0;             // 0: drawn
  int operations = 0;          // of each client, at most; 0: drawn
  std::set<std::string> without{};  // names out of `kinds_of_load`
};

/// The kinds of load that can be left out, with a word on each.
struct load_kind {
  const char* name;
  const char* what;
};
const std::vector<load_kind>& kinds_of_load();

struct array_plan {
  enum class origin : unsigned char { allocated, filled, adopted, borrowed };
  int rank = 1;
  point size{1, 1, 1, 1}, tile{1, 1, 1, 1};
  origin from = origin::filled;
  word salt = 0;          // of its contents; a filled one has the same everywhere
  bool fragile = false;   // tasks that change it may fail; it is read by tasks on fragile arrays only
  area whole() const { return {{0, 0, 0, 0}, size}; }
};

struct access_plan {
  int array = -1;
  area part{};            // coordinates begin at 0 there; as large as the array: the handle itself
  action what = action::read;
  mapping map{};
  point size() const {
    point s;
    for (std::size_t d = 0; d < 4; ++d) s[d] = part.size(d);
    return s;
  }
};

/// The work of a body beside its arithmetic.
struct nesting {
  enum class kind : unsigned char { none, children, scratch, yield, continuation, chain };
  kind what = kind::none;
  int depth = 1, width = 2;
  friend bool operator==(const nesting&, const nesting&) = default;
};

struct amount_plan {
  std::string name;
  int amount = 1;
};

struct operation {
  enum class kind : unsigned char {
    call,         // spawn of a closure; accesses are those of a form, futures the values it takes
    each,         // for_each of a closure
    sweep,        // for_each whose chunks each update a whole array
    scatter,      // for_each that reduces
    stir,         // kernels, spawned or over an index space
    stencil,
    fold,
    host,         // read, write or update by the host
    open,         // the same, held until close
    close,
    try_read,
    run,          // of a recorded graph
    then,
    await_two,
    wait,         // get() of an earlier future
    wait_briefly,
    wait_all,     // with a limit
    look,         // report, executors, explain
    drop_future,
    renew,        // drops the handle of an array, makes another one in its place
    wrong,        // a call that must be refused
    count,        // adds to the common array
  };
  enum class stop : unsigned char { never, before, after, polled };
  enum class mistake : unsigned char { empty_handle, too_many_cores, unknown_resource, outside, overlap };

  kind what = kind::call;
  std::vector<access_plan> accesses{};
  std::vector<int> futures{};  // operations of the same client
  word salt = 0;
  int space_rank = 0;          // each, sweep, scatter, kernels; 0: spawned
  point space{1, 1, 1, 1}, chunk{0, 0, 0, 0};  // zeros: chosen by the runtime
  int priority = 0;
  std::string where{};         // names joined by '|'; empty: any
  std::vector<amount_plan> amounts{};
  int retries = 0, throws = 0; // the first so many attempts throw; for `each`, in one chunk of three
  stop stopping = stop::never;
  nesting inner{};
  bool keep = false;           // the future is asked later
  int graph = -1;              // run
  int slot = -1;               // open, close
  int array = -1;              // renew
  array_plan renewed{};
  mistake wrong = mistake::empty_handle;
  int patience_us = 0;

  bool fails_for_good() const { return throws > retries; }
};

struct client_plan {
  std::vector<array_plan> arrays{};      // as they are at the beginning
  std::vector<std::vector<operation>> graphs{};
  std::vector<operation> operations{};   // first those that give contents to arrays that have none
};

struct device_plan {
  std::string name;
  std::uint64_t memory_bytes = 0;
  int lanes = 4;
};

struct plan {
  std::uint64_t seed = 0;
  int threads = 1, core_groups = 1;
  std::vector<device_plan> devices{};
  std::uint64_t memory_bytes = 0;
  int window_us = 1000, spin_us = 20, card_wait_ms = 1000;
  bool waiting_thread_helps = true, cost_cache = false, trace = false, bind = false;
  std::size_t tasks_in_flight_max = 65536, decisions_kept = 4096;
  bool eager_devices = false;
  int licences = 3, tokens = 50;        // of two named quantities
  index common = 1, common_tile = 1;    // size of the common array
  std::vector<client_plan> clients{};

  std::size_t operation_count() const;
  std::string text() const;              // the options in one line
};

plan draw(const draw_options&);

const char* name_of(operation::kind);
/// Returns one line, for a person who looks for the cause.
std::string text(const operation&);
std::string text(const array_plan&);

}  // namespace mixed
