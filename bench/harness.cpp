// Turns, interleaving, child processes and medians of harness.hpp.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "harness.hpp"

#include "workloads.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <utility>

#include <malloc.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <ctime>

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX leaves it to the program

namespace bench {

namespace {

double process_cpu_seconds() {
  timespec spent{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) + static_cast<double>(spent.tv_nsec) * 1e-9;
}

/// Waits until no thread of this process computes: OpenBLAS's and libgomp's threads spin for a while after their work.
/// Gives up after a second.
void wait_until_quiet() {
  constexpr auto slice = std::chrono::milliseconds(2);
  for (int attempt = 0; attempt < 500; ++attempt) {
    const auto before = process_cpu_seconds();
    sleep_for(slice);
    if (process_cpu_seconds() - before < 0.05 * std::chrono::duration<double>(slice).count()) return;
  }
}

std::string this_program() {
  std::array<char, 4096> path{};
  const auto length = readlink("/proc/self/exe", path.data(), path.size());
  if (length <= 0) throw std::runtime_error("cannot find this program's own file");
  return {path.data(), static_cast<std::size_t>(length)};
}

/// Runs this program again with these arguments and returns what it wrote to stdout. Throws if it failed.
std::string output_of_child(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), this_program());
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw std::runtime_error("cannot make a pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  pid_t child = 0;
  const int failed = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  std::array<char, 4096> chunk{};
  while (failed == 0) {
    const auto got = read(ends[0], chunk.data(), chunk.size());
    if (got <= 0) break;
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
  close(ends[0]);
  if (failed != 0) throw std::runtime_error("cannot start a child process");
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) throw std::runtime_error("its process died of signal " + std::to_string(WTERMSIG(status)));
  if (WEXITSTATUS(status) != 0) throw std::runtime_error("its process said: " + text.substr(0, text.find('\n')));
  return text;
}

figures child_turn(const group& work, const contender& who, const settings& how) {
  std::vector<std::string> arguments{"--turn", work.name, who.name(), "--threads", std::to_string(how.threads)};
  if (how.quick) arguments.emplace_back("--quick");
  return figures_in(output_of_child(std::move(arguments)));
}

/// A contender in the run of one group: out as soon as it fails once.
struct entrant {
  contender* who;
  bool running = false;
  bool out = false;
  std::vector<std::vector<double>> samples;
};

class group_run {
 public:
  group_run(const group& work, const settings& how) : work_(work), how_(how) {}

  void enter(contender& who) {
    entrants_.push_back({&who, false, false, std::vector<std::vector<double>>(work_.rows.size())});
    auto& newcomer = entrants_.back();
    guarded(newcomer, [&] {
      if (work_.where != stage::shared) return;
      who.start(how_.threads, work_.why);
      newcomer.running = true;
      if (work_.verify) work_.verify(who);
      who.pause();
    });
  }

  void repetition(bool warm_up) {
    for (auto& each : entrants_) {
      if (each.out) continue;
      guarded(each, [&] {
        const auto found = turn(*each.who);
        if (std::none_of(found.begin(), found.end(), [](const auto& figure) { return figure.has_value(); }))
          each.out = true;  // does not support this benchmark
        for (std::size_t i = 0; i < found.size() && i < each.samples.size() && !warm_up; ++i)
          if (found[i] && !std::isnan(*found[i])) each.samples[i].push_back(*found[i]);
      });
    }
  }

  void leave() {
    for (auto& each : entrants_) {
      if (!each.running) continue;
      guarded(each, [&] {
        each.who->resume();
        each.who->stop();
      });
    }
    wait_until_quiet();
    malloc_trim(0);
  }

  outcome result() && {
    outcome all;
    for (std::size_t i = 0; i < work_.rows.size(); ++i) {
      row_result one{work_.rows[i], {}, {}};
      for (const auto& each : entrants_) {
        const auto& samples = each.samples[i];
        if (samples.empty() || each.out) continue;
        const auto [least, most] = std::minmax_element(samples.begin(), samples.end());
        one.by_contender[each.who->name()] = {median(samples), *least, *most};
      }
      all.rows.push_back(std::move(one));
    }
    all.problems = std::move(problems_);
    return all;
  }

 private:
  figures turn(contender& who) {
    switch (work_.where) {
      case stage::child:
        return child_turn(work_, who, how_);
      case stage::unstarted: {
        wait_until_quiet();
        return work_.measure(who, how_);
      }
      case stage::shared:
        break;
    }
    wait_until_quiet();
    who.resume();
    auto found = work_.measure(who, how_);
    who.pause();
    return found;
  }

  template <class F>
  void guarded(entrant& each, F&& f) {
    try {
      f();
    } catch (const missing& e) {
      note_absent(work_.name + ": " + each.who->name() + ": " + e.what());
      each.out = true;
    } catch (const std::exception& e) {
      problems_.push_back(work_.name + ": " + each.who->name() + " is left out: " + e.what());
      each.out = true;
    }
  }

  const group& work_;
  const settings& how_;
  std::vector<entrant> entrants_;
  std::vector<std::string> problems_;
};

std::optional<bool> judge(const row_result& result) {
  const auto* mine = result.of("troupe");
  if (mine == nullptr || (!result.spec.bound && result.spec.ratios.empty() && result.spec.margins.empty())) return {};
  const bool lower = result.spec.direction == better::lower;
  const double judged = !result.spec.by_worst ? mine->median : lower ? mine->max : mine->min;
  if (result.spec.bound && (lower ? judged > *result.spec.bound : judged < *result.spec.bound)) return false;
  bool peer_missing = false;
  for (const auto& [peer, factor] : result.spec.ratios) {
    const auto advantage = result.advantage_over(peer);
    if (!advantage)
      peer_missing = true;
    else if (*advantage < factor)
      return false;
  }
  for (const auto& [peer, amount] : result.spec.margins) {
    const auto* theirs = result.of(peer);
    if (theirs == nullptr)
      peer_missing = true;
    else if (mine->median > theirs->median + amount)
      return false;
  }
  if (peer_missing) return {};
  return true;
}

}  // namespace

const summary* row_result::of(const std::string& contender) const {
  const auto found = by_contender.find(contender);
  return found == by_contender.end() ? nullptr : &found->second;
}

std::optional<double> row_result::advantage_over(const std::string& peer) const {
  const auto* mine = of("troupe");
  const auto* theirs = of(peer);
  if (mine == nullptr || theirs == nullptr) return {};
  const bool lower = spec.direction == better::lower;
  const double ratio = lower ? theirs->median / mine->median : mine->median / theirs->median;
  if (!std::isfinite(ratio)) return {};
  return ratio;
}

namespace {
std::vector<std::string> absences;
}

void note_absent(const std::string& what) {
  if (std::find(absences.begin(), absences.end(), what) == absences.end()) absences.push_back(what);
}

std::vector<std::string> noted_absences() { return absences; }

figures figures_in(const std::string& output) {
  std::istringstream lines(output);
  figures found;
  for (std::string key, value; lines >> key;)
    if (key == "figure" && lines >> value)
      found.push_back(value == "-" ? std::nullopt : std::optional(std::strtod(value.c_str(), nullptr)));
  return found;
}

outcome run_group(const group& work, const std::vector<std::unique_ptr<contender>>& contenders, const settings& how) {
  group_run run(work, how);
  for (const auto& each : contenders) run.enter(*each);
  if (work.where != stage::child && work.warms_up) run.repetition(true);
  for (int r = 0; r < std::min(how.repetitions, work.repetitions_max); ++r) run.repetition(false);
  run.leave();
  auto all = std::move(run).result();
  for (auto& each : all.rows) {
    each.met = judge(each);
    if (each.spec.is_proof && each.met == false)
      all.problems.push_back(each.spec.name + ": " + std::to_string(each.of("troupe")->max) + " " + each.spec.unit);
  }
  return all;
}

int run_child_turn(const group& work, contender& who, const settings& how) {
  try {
    who.start(how.threads, work.why);
    const auto found = work.measure(who, how);
    who.stop();
    for (const auto& figure : found) {
      if (figure)
        std::printf("figure %.17g\n", *figure);
      else
        std::printf("figure -\n");
    }
    return 0;
  } catch (const std::exception& e) {
    std::printf("%s\n", e.what());
    return 1;
  }
}

}  // namespace bench
