// Every row of the table with its target, and the measurement behind each group of rows.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "benchmarks.hpp"

#include "bench/loops/rows.hpp"
#include "bench/scheduling/rows.hpp"
#include "bench/streams/rows.hpp"
#include "bench/taskbench/neighbour.hpp"
#include "bench/taskbench/rows.hpp"
#include "cholesky.hpp"
#include "device_benchmarks.hpp"
#include "views.hpp"
#include "workloads.hpp"

#include <malloc.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <map>
#include <string_view>

namespace bench {

namespace {

using namespace std::chrono_literals;

constexpr auto dag_body = 10us;

// --- the table ------------------------------------------------------------------------------------------------------

/// Name, unit, direction, bound, ratios. A row without bound and ratios is reported only. Allocations and context
/// switches count the whole process during the timed part; a bound of 0.01 means "none but a chunk now and then".
std::vector<row> table(const settings& how) {
  constexpr auto lower = better::lower;
  constexpr auto higher = better::higher;
  // At most 6 % above the ideal: 2.65 us where 10 us bodies run on four threads.
  const double dag_10us_bound = 10'600.0 / how.threads;
  const std::vector<ratio_target> best_of_all{{"tbb", 1}, {"openmp", 1}, {"dpotrf", 1}};
  return {
      {"independent", "ns/task", lower, 200, {{"starpu", 10}}},
      {"independent/allocations", "per task", lower, 0.01},
      {"independent/context_switches", "per task", lower},

      {"chain", "ns/task", lower, 300, {{"starpu", 9}}},
      {"chain/allocations", "per task", lower, 0.01},
      {"chain/context_switches", "per task", lower},

      {"random_dag/5000", "ns/task", lower, 350},
      {"random_dag/50000", "ns/task", lower, 350},
      {"random_dag/500000", "ns/task", lower, 350},
      {"random_dag/linearity", "slowest/fastest", lower, 1.5},
      {"random_dag/allocations", "per task", lower, 0.01},
      {"random_dag/context_switches", "per task", lower},

      {"submitters/1", "ns/task", lower},
      {"submitters/2", "ns/task", lower},
      {"submitters/4", "ns/task", lower},
      {"submitters/speedup", "of 4 over 1", higher, 2.5},

      {"random_dag_10us", "ns/task", lower, dag_10us_bound},

      {"granularity/metg50", "us", lower, 0.6},
      {"granularity/metg90", "us", lower, 3.0},
      {"granularity/0.5us", "us/task", lower},
      {"granularity/1us", "us/task", lower},
      {"granularity/2us", "us/task", lower},
      {"granularity/4us", "us/task", lower},
      {"granularity/8us", "us/task", lower},
      {"granularity/16us", "us/task", lower},
      {"granularity/32us", "us/task", lower},
      {"granularity/64us", "us/task", lower},
      {"granularity/128us", "us/task", lower},

      {"round_trip", "ns p50", lower, 1500},
      {"round_trip_idle", "ns p50", lower, {}, {{"handoff", 1 / 1.5}}},

      {"pending_memory", "bytes/task", lower, 320},
      {"replay", "ns/task", lower, 120},

      {"cholesky/64", "GF/s", higher, {}, best_of_all},
      {"cholesky/128", "GF/s", higher, {}, best_of_all},
      {"cholesky/256", "GF/s", higher, {}, best_of_all},
      {"cholesky/512", "GF/s", higher, {}, best_of_all},

      {"stencil/planning_8x8", "ns/chunk", lower, 300},
      {"stencil/planning_16x16", "ns/chunk", lower, 300},
      {"stencil/total_8x8", "ns/chunk", lower},
      {"stencil/total_16x16", "ns/chunk", lower},

      {"throughput/10000", "ns/task", lower},
      {"throughput/100000", "ns/task", lower},
      {"throughput/1000000", "ns/task", lower},
      {"throughput/spread", "slowest/fastest", lower, 1.15},
      {"throughput/memory_left", "MiB", lower, 16},

      {"start_stop", "ms", lower, 5},
      {"idle_cpu", "% of a core", lower, 0.02},
  };
}

// --- small parts ----------------------------------------------------------------------------------------------------

double per(double total, std::size_t n) { return total / static_cast<double>(n); }

/// Time, allocations and context switches per task.
figures three(const std::optional<cost>& spent, std::size_t n) {
  if (!spent) return {{}, {}, {}};
  return {per(spent->nanoseconds, n), per(spent->allocations, n), per(spent->context_switches, n)};
}

std::optional<double> slowest_over_fastest(const std::vector<std::optional<double>>& times) {
  double least = 0;
  double most = 0;
  for (const auto& time : times) {
    if (!time) return {};
    least = least == 0 ? *time : std::min(least, *time);
    most = std::max(most, *time);
  }
  return most / least;
}

const dag& cached_dag(std::size_t n, std::chrono::nanoseconds body = 0ns) {
  static std::map<std::pair<std::size_t, long>, dag> graphs;
  const auto key = std::pair(n, static_cast<long>(body.count()));
  const auto found = graphs.find(key);
  return found != graphs.end() ? found->second : graphs.emplace(key, make_dag(n, body)).first->second;
}

/// Runs small graphs whose result depends on the order of every conflicting pair.
void verify_dag(contender& who) {
  std::array<std::uint64_t, dag_handles> values{};
  auto graph = make_dag(3000);
  graph.values = values.data();
  if (who.random_dag(graph) && values != run_dag_serially(graph))
    throw wrong_answer("the random graph gave another result than serial execution");
}

void verify_replay(contender& who) {
  std::array<std::uint64_t, dag_handles> values{};
  auto graph = make_dag(3000);
  graph.values = values.data();
  constexpr int rounds = 3;
  if (who.replay(graph, rounds) && values != run_dag_serially(graph, 1 + rounds))
    throw wrong_answer("the replayed graph gave another result than serial execution");
}

// --- measurements ---------------------------------------------------------------------------------------------------

figures measure_independent(contender& who, const settings& how) {
  const std::size_t n = how.quick ? 20'000 : 100'000;
  return three(who.independent(n), n);
}

figures measure_chain(contender& who, const settings& how) {
  const std::size_t n = how.quick ? 20'000 : 100'000;
  return three(who.chain(n), n);
}

figures measure_submitters(contender& who, const settings& how) {
  const std::size_t n = how.quick ? 20'000 : 200'000;
  figures found;
  for (const unsigned threads : {1U, 2U, 4U}) {
    const auto spent = who.submitting(threads, n / threads);
    found.push_back(spent ? std::optional(per(spent->nanoseconds, n)) : std::nullopt);
  }
  found.push_back(found[0] && found[2] ? std::optional(*found[0] / *found[2]) : std::nullopt);
  return found;
}

figures measure_random_dag(contender& who, const settings& how) {
  figures found;
  figures counts{{}, {}};
  for (const std::size_t n : {5'000U, 50'000U, 500'000U}) {
    if (how.quick && n > 50'000) {
      found.emplace_back();
      continue;
    }
    const int rounds = n == 5'000 ? 10 : 1;  // small graphs end too soon to be timed once
    double total = 0;
    int done = 0;
    for (; done < rounds; ++done) {
      const auto spent = who.random_dag(cached_dag(n));
      if (!spent) break;
      total += spent->nanoseconds;
      if (n == 50'000) counts = {per(spent->allocations, n), per(spent->context_switches, n)};
    }
    found.push_back(done == rounds ? std::optional(per(total, n) / rounds) : std::nullopt);
  }
  found.push_back(how.quick ? slowest_over_fastest({found[0], found[1]}) : slowest_over_fastest(found));
  found.insert(found.end(), counts.begin(), counts.end());
  return found;
}

figures measure_random_dag_10us(contender& who, const settings&) {
  const std::size_t n = 10'000;
  const auto spent = who.random_dag(cached_dag(n, dag_body));
  return {spent ? std::optional(per(spent->nanoseconds, n)) : std::nullopt};
}

/// The smallest body, in us, that reaches this efficiency; between measured bodies linear in the body's logarithm.
/// One that the smallest measured body already reaches is reported as that body ("at most").
std::optional<double> metg(const std::vector<double>& bodies_us, const std::vector<double>& efficiencies,
                           double wanted) {
  for (std::size_t i = 0; i < bodies_us.size(); ++i) {
    if (efficiencies[i] < wanted) continue;
    if (i == 0) return bodies_us[0];
    const double part = (wanted - efficiencies[i - 1]) / (efficiencies[i] - efficiencies[i - 1]);
    return bodies_us[i - 1] * std::pow(bodies_us[i] / bodies_us[i - 1], part);
  }
  return {};
}

figures measure_granularity(contender& who, const settings& how) {
  const std::vector<double> bodies_us{0.5, 1, 2, 4, 8, 16, 32, 64, 128};
  std::vector<double> efficiencies;
  figures times;
  for (const double body_us : bodies_us) {
    const double total_us = (how.quick ? 10'000 : 40'000) * static_cast<double>(how.threads);
    const auto n = static_cast<std::size_t>(total_us / body_us);
    const auto spent = who.spinning(n, std::chrono::nanoseconds(static_cast<long>(body_us * 1000)));
    if (!spent) return figures(2 + bodies_us.size());
    const double us_per_task = per(spent->nanoseconds, n) / 1000;
    efficiencies.push_back(body_us / how.threads / us_per_task);
    times.emplace_back(us_per_task);
  }
  figures found{metg(bodies_us, efficiencies, 0.5), metg(bodies_us, efficiencies, 0.9)};
  found.insert(found.end(), times.begin(), times.end());
  return found;
}

figures measure_round_trip(contender& who, const settings& how) {
  return {who.round_trip(how.quick ? 500 : 3000, 0us)};
}

figures measure_round_trip_idle(contender& who, const settings& how) {
  return {who.round_trip(how.quick ? 50 : 200, 1000us)};
}

figures measure_pending_memory(contender& who, const settings&) {
  malloc_trim(0);
  return {who.pending_bytes(50'000)};
}

figures measure_replay(contender& who, const settings&) {
  const std::size_t n = 20'000;
  const int rounds = 20;
  const auto spent = who.replay(cached_dag(n), rounds);
  return {spent ? std::optional(per(spent->nanoseconds, n) / rounds) : std::nullopt};
}

figures measure_cholesky(contender& who, const settings& how) {
  const std::size_t n = how.quick ? 1024 : 4096;
  static cholesky_problem problem;
  if (problem.n != n) problem = make_cholesky_problem(n);
  const double flops = static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n) / 3;
  figures found;
  for (const std::size_t tile : {64U, 128U, 256U, 512U}) {
    std::fill(problem.factor.begin(), problem.factor.end(), 0.0);
    const auto spent = who.cholesky(problem, tile);
    if (spent) check_factor(problem);
    found.push_back(spent ? std::optional(flops / spent->nanoseconds) : std::nullopt);
  }
  return found;
}

figures measure_stencil(contender& who, const settings& how) {
  const auto ns_per_chunk = [](const std::optional<cost>& spent, std::size_t side, int rounds) {
    return spent ? std::optional(per(spent->nanoseconds, side * side) / rounds) : std::nullopt;
  };
  const int scale = how.quick ? 1 : 4;
  figures found;
  for (const auto& [side, rounds] : {std::pair<std::size_t, int>{8, 64}, {16, 16}})
    found.push_back(ns_per_chunk(who.stencil_planning(side, rounds * scale), side, rounds * scale));
  for (const auto& [side, rounds] : {std::pair<std::size_t, int>{8, 64}, {16, 16}})
    found.push_back(ns_per_chunk(who.stencil(side, rounds * scale), side, rounds * scale));
  return found;
}

/// In a process of its own: memory is measured from after a first small run to after everything was dropped.
figures measure_throughput(contender& who, const settings& how) {
  figures found;
  if (!who.independent(10'000)) return figures(5);
  malloc_trim(0);
  const auto before = memory_use::now();
  double seconds = 0;  // of one run with its preparation
  for (const std::size_t n : {10'000U, 100'000U, 1'000'000U}) {
    std::vector<double> times;
    for (std::size_t run = 0; run < std::max<std::size_t>(1, 200'000 / n); ++run) {
      if (how.quick && n > 100'000) break;
      if (10 * seconds > 5) break;  // the next size would hold up all others
      const meter whole;
      const auto spent = who.independent(n);
      if (!spent) break;
      times.push_back(per(spent->nanoseconds, n));
      if (n > 10'000) seconds = whole.stop().nanoseconds / 1e9;
    }
    found.push_back(times.empty() ? std::nullopt : std::optional(median(times)));
  }
  sleep_for(500ms);  // a runtime may keep what it will soon need again
  malloc_trim(0);
  const auto left = (memory_use::now().resident - before.resident) / (1024.0 * 1024.0);
  found.push_back(how.quick ? slowest_over_fastest({found[0], found[1]}) : slowest_over_fastest(found));
  found.push_back(found.back() ? std::optional(left) : std::nullopt);
  return found;
}

figures measure_start_stop(contender& who, const settings& how) {
  if (who.name() == "dpotrf" || who.name() == "handoff") return {{}};  // not runtimes
  const meter clock;
  who.start(how.threads, purpose::small_tasks);
  who.stop();
  return {clock.stop().nanoseconds / 1e6};
}

double process_cpu_ms() {
  timespec spent{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) * 1e3 + static_cast<double>(spent.tv_nsec) * 1e-6;
}

figures measure_idle_cpu(contender& who, const settings&) {
  if (who.name() == "handoff") return {{}};
  if (!who.round_trip(10, 0us)) return {{}};
  sleep_for(300ms);  // idle threads may look for work a little longer; OpenBLAS's own, in this process too, for 100 ms
  constexpr auto window = 2000ms;
  const auto before = process_cpu_ms();
  sleep_for(window);
  return {100 * (process_cpu_ms() - before) / static_cast<double>(window.count())};
}

}  // namespace

std::vector<group> all_groups(const settings& how) {
  std::vector<group> groups{
      {"independent", "empty tasks, one handle each, submission to all done", {}, {}, {}, measure_independent, {}},
      {"chain", "empty tasks that all update one handle", {}, {}, {}, measure_chain, {}},
      {"submitters", "empty tasks of threads with arrays of their own", {}, {}, {}, measure_submitters, {}},
      {"random_dag", "empty tasks, 2 reads + 1 update of 64 handles", {}, {}, {}, measure_random_dag, verify_dag},
      {"random_dag_10us", "the same with bodies of 10 us", {}, {}, {}, measure_random_dag_10us, {}},
      {"granularity", "independent spinning tasks, body 0.5 to 128 us", {}, {}, {}, measure_granularity, {}},
      {"round_trip", "submit one empty task and wait, back to back", {}, {}, {}, measure_round_trip, {}},
      {"round_trip_idle", "the same after 1 ms of idleness", {}, {}, {}, measure_round_trip_idle, {}},
      {"pending_memory", "50,000 tasks waiting behind one", {}, {}, stage::child, measure_pending_memory, {}},
      {"replay",
       "a random graph of 20,000 tasks recorded once, run 20 times",
       {},
       {},
       {},
       measure_replay,
       verify_replay},
      {"cholesky", "tiled Cholesky, double, n = 4096", {}, purpose::linear_algebra, {}, measure_cholesky, {}},
      {"stencil", "9-point stencil over tiles of 64 x 64 with an empty body", {}, {}, {}, measure_stencil, {}},
      {"throughput", "independent tasks, 10^4 to 10^6", {}, {}, stage::child, measure_throughput, {}},
      {"start_stop", "start the runtime and stop it again", {}, {}, stage::unstarted, measure_start_stop, {}},
      {"idle_cpu", "processor time while the runtime is up and idle", {}, {}, stage::child, measure_idle_cpu, {}},
  };
  for (auto& each : table(how)) {
    const auto name = each.name.substr(0, each.name.find('/'));
    for (auto& group : groups)
      if (group.name == name) group.rows.push_back(each);
  }
  groups.push_back(taskbench_group(how));
  groups.push_back(neighbour_group());
  groups.push_back(scheduling_group(how));
  groups.push_back(loops_group(how));
  groups.push_back(views_group());
  groups.push_back(stream_group(how));
  for (auto& each : device_groups(how)) groups.push_back(std::move(each));
  return groups;
}

}  // namespace bench
