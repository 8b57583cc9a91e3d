// What this file is for: draws the options of a mixed load, and says in words what a plan holds.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "plan.hpp"

#include <algorithm>
#include <array>

#include "generator.hpp"

namespace mixed {

const std::vector<load_kind>& kinds_of_load() {
  static const std::vector<load_kind> list = {
      {"nested", "bodies that spawn and wait, or yield their core"},
      {"cpu_zero", "tasks that ask for {\"cpu\", 0}"},
      {"cpu_many", "tasks that ask for several slots"},
      {"named", "tasks that ask for named quantities"},
      {"gpu_held", "tasks that hold devices"},
      {"graphs", "recorded graphs"},
      {"graph_waits", "bodies that wait in recorded graphs"},
      {"failures", "tasks that fail for good, and what depends on them"},
      {"retries", "tasks that fail at first"},
      {"cancelling", "stop tokens"},
      {"hold", "host views that are held while more is called"},
      {"borrow", "memory of the caller"},
      {"overlap", "calls that must be refused because their boxes overlap"},
      {"mistakes", "calls that must be refused"},
      {"renewal", "handles of arrays that are dropped early"},
      {"continuations", "future::then"},
      {"coroutines", "co_await"},
      {"wait_all", "wait_all_for while others call"},
      {"kernels", "kernels with a text for devices"},
      {"reductions", "reduce"},
      {"sweeps", "for_each whose chunks each update all of an array"},
      {"windows", "windows with borders"},
      {"large", "arrays of more than 65,535 elements"},
      {"budget", "a budget of host memory, with spilling"},
      {"few_in_flight", "a small bound on tasks in flight"},
      {"devices", "software GPUs"},
      {"opencl", "OpenCL, where there is a driver"},
      {"small_devices", "devices with little memory"},
  };
  return list;
}

namespace {

constexpr std::uint64_t mib = 1 << 20;

std::uint64_t bytes_of(const array_plan& a) {
  // Whole tiles, also those at the edge.
  return static_cast<std::uint64_t>(a.whole().volume()) * sizeof(word);
}

// Returns what one operation may need at once, and what may be held open beside it.
std::uint64_t least_budget(const plan& p) {
  std::uint64_t most = 0, held = 0;
  for (const client_plan& c : p.clients) {
    std::uint64_t all = 0, largest = 0;
    for (const array_plan& a : c.arrays) {
      all += bytes_of(a);
      largest = std::max(largest, bytes_of(a));
    }
    // A call has six accesses at most, a run touches any number of arrays; a view is held of one array, three times.
    most = std::max(most, all);
    held += 3 * largest;
  }
  return most + held + static_cast<std::uint64_t>(p.common) * sizeof(word);
}

const char* name_of(array_plan::origin o) {
  constexpr const char* names[] = {"allocated", "filled", "adopted", "borrowed"};
  return names[static_cast<int>(o)];
}

std::string text(const point& p) {
  std::string s = "(";
  for (std::size_t d = 0; d < 4; ++d) s += (d == 0 ? "" : ",") + std::to_string(p[d]);
  return s + ")";
}

const char* name_of(action a) {
  constexpr const char* names[] = {"read", "write", "update", "reduce+", "reduce^", "reduce max"};
  return names[static_cast<int>(a)];
}

std::string text(const mapping& m) {
  constexpr const char* names[] = {"", " one_to_one", " all", " slice", " fixed", " window", " mirror", " project"};
  constexpr const char* edges[] = {" clip", " clamp", " wrap", " fill"};
  std::string s = names[static_cast<int>(m.what)];
  if (m.what == mapping::kind::window) s += text(m.radius) + edges[static_cast<int>(m.border)];
  if (m.what == mapping::kind::slice || m.what == mapping::kind::mirror) s += " " + std::to_string(m.dim);
  if (m.what == mapping::kind::fixed) s += " " + text(m.where.lo) + ".." + text(m.where.hi);
  return s;
}

}  // namespace

plan draw(const draw_options& how) {
  chance options(mix(how.seed, 1));
  const auto with = [&](const char* load) { return !how.without.contains(load); };
  plan p;
  p.seed = how.seed;
  constexpr std::array<int, 8> threads = {1, 1, 2, 2, 3, 4, 8, 16};
  p.threads = threads[static_cast<std::size_t>(options.from(0, 7))];
  if (how.threads > 0) p.threads = how.threads;
  p.core_groups = static_cast<int>(options.one_in(2) ? 1 : options.from(1, 4));
  if (how.core_groups > 0) p.core_groups = how.core_groups;
  p.core_groups = std::min(p.core_groups, p.threads);
  bool ample = true;
  const auto kind = options.from(0, 7);
  const bool small = options.one_in(3);
  const int lanes = static_cast<int>(options.from(1, 4));
  if (kind <= 3 && with("devices")) {
    ample = !(small && with("small_devices"));
    const int count = static_cast<int>(kind == 3 ? 3 : kind == 0 ? 1 : 2);
    for (int i = 0; i < count; ++i)
      p.devices.push_back({i == 2 ? "sim:0" : "sim:" + std::to_string(i), ample ? 64 * mib : 192 * 1024, lanes});
  } else if (kind == 4 && options.one_in(2) && with("opencl") && with("devices")) {
    p.devices.push_back({"opencl", 64 * mib, lanes});
  }
  constexpr std::array<int, 6> windows = {0, 10, 1000, 1000, 50'000, 1'000'000};
  p.window_us = windows[static_cast<std::size_t>(options.from(0, 5))];
  p.spin_us = static_cast<int>(options.one_in(2) ? 20 : options.one_in(2) ? 0 : options.from(1, 500));
  p.card_wait_ms = static_cast<int>(options.one_in(2) ? 1000 : options.from(0, 20));
  p.waiting_thread_helps = !options.one_in(4);
  p.cost_cache = options.one_in(6);
  p.trace = options.one_in(8);
  p.bind = options.one_in(10);
  p.decisions_kept = options.one_in(4) ? 0 : 4096;
  p.eager_devices = mix(how.seed, 3) % 2 == 0;
  const auto bound = options.from(8, 100);
  if (options.one_in(6) && with("few_in_flight")) p.tasks_in_flight_max = static_cast<std::size_t>(bound);
  p.licences = static_cast<int>(options.from(1, 4));
  p.tokens = static_cast<int>(options.from(2, 60));
  p.common = options.from(1, 40);
  p.common_tile = options.from(1, p.common);
  const bool budget = options.one_in(4) && with("budget");
  if (budget) p.memory_bytes = 1;  // for now: the generator only asks whether there is one
  int clients = static_cast<int>(options.one_in(3) ? 1 : options.from(1, 4));
  if (how.clients > 0) clients = how.clients;
  int operations = static_cast<int>(options.from(200, 2000)) / clients;
  if (how.operations > 0) operations = std::min(operations, how.operations);
  for (int i = 0; i < clients; ++i) {
    generator g(p, how.without, mix(mix(how.seed, 2), 100 + static_cast<word>(i)), static_cast<int>(p.devices.size()));
    g.allow_gpu_scope(ample);
    p.clients.push_back(g.client(operations));
  }
  if (budget) {
    const std::uint64_t least = least_budget(p);
    p.memory_bytes = least + options.word() % (least / 2 + 1);
  }
  return p;
}

std::size_t plan::operation_count() const {
  std::size_t n = 0;
  for (const client_plan& c : clients) n += c.operations.size();
  return n;
}

std::string plan::text() const {
  std::string s = "seed " + std::to_string(seed) + ": threads " + std::to_string(threads) + ", core groups " +
                  std::to_string(core_groups) + ", devices";
  for (const device_plan& d : devices)
    s += " " + d.name + "/" + std::to_string(d.memory_bytes / 1024) + "KiB/" + std::to_string(d.lanes);
  if (devices.empty()) s += " none";
  s += ", window " + std::to_string(window_us) + " us, spin " + std::to_string(spin_us) + " us";
  if (memory_bytes != 0) s += ", budget " + std::to_string(memory_bytes);
  if (tasks_in_flight_max != 65536) s += ", in flight " + std::to_string(tasks_in_flight_max);
  if (!waiting_thread_helps) s += ", waiting threads do not help";
  if (cost_cache) s += ", cost cache";
  if (trace) s += ", trace";
  if (bind) s += ", bound";
  if (decisions_kept == 0) s += ", no decisions";
  if (eager_devices) s += ", eager devices";
  s += ", licences " + std::to_string(licences) + ", tokens " + std::to_string(tokens) + ", card wait " +
       std::to_string(card_wait_ms) + " ms, clients " + std::to_string(clients.size()) + ", operations " +
       std::to_string(operation_count());
  return s;
}

const char* name_of(operation::kind k) {
  constexpr const char* names[] = {"call",  "each", "sweep",    "scatter", "stir", "stencil",   "fold", "host",
                                   "open",  "close", "try_read", "run",     "then", "await_two", "wait", "wait_briefly",
                                   "wait_all", "look", "drop_future", "renew", "wrong", "count"};
  return names[static_cast<int>(k)];
}

std::string text(const array_plan& a) {
  return std::to_string(a.rank) + "-d " + name_of(a.from) + (a.fragile ? " fragile " : " ") + text(a.size) + " tiles " +
         text(a.tile);
}

std::string text(const operation& op) {
  std::string s = name_of(op.what);
  for (const access_plan& a : op.accesses)
    s += std::string(" ") + name_of(a.what) + " #" + std::to_string(a.array) + text(a.part.lo) + ".." +
         text(a.part.hi) + text(a.map);
  for (int f : op.futures) s += " of " + std::to_string(f);
  if (op.space_rank > 0) s += " over " + text(op.space) + " chunks " + text(op.chunk);
  if (op.priority != 0) s += " priority " + std::to_string(op.priority);
  if (!op.where.empty()) s += " at " + op.where;
  for (const amount_plan& a : op.amounts) s += " {" + a.name + "," + std::to_string(a.amount) + "}";
  if (op.retries > 0) s += " retries " + std::to_string(op.retries);
  if (op.throws > 0) s += " throws " + std::to_string(op.throws);
  constexpr const char* stops[] = {"", " stopped before", " stopped after", " stopped while it looks"};
  s += stops[static_cast<int>(op.stopping)];
  constexpr const char* inner[] = {"", " children", " scratch", " yield", " continuation", " chain"};
  if (op.inner.what != nesting::kind::none)
    s += inner[static_cast<int>(op.inner.what)] + (" " + std::to_string(op.inner.depth)) + "x" +
         std::to_string(op.inner.width);
  if (op.graph >= 0) s += " graph " + std::to_string(op.graph);
  if (op.slot >= 0) s += " slot " + std::to_string(op.slot);
  if (op.array >= 0) s += " #" + std::to_string(op.array) + " = " + text(op.renewed);
  if (op.keep) s += " kept";
  return s;
}

}  // namespace mixed
