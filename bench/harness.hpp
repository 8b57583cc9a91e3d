// Runs a benchmark on every contender in turn, again and again, and keeps median, minimum and maximum.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Repetition r runs troupe, then each peer, then repetition r + 1: a machine that slows down for a second slows all of
// them. Around its turn a contender is resumed and paused, and the next turn begins only when the process is quiet.
#pragma once

#include "contender.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace bench {

struct settings {
  unsigned threads = 1;
  int repetitions = 9;
  bool quick = false;                  ///< smaller sizes: shows that everything runs, proves nothing
  std::vector<std::string> devices{};  ///< accelerators of the rows about them: "sim:0"
  std::uint64_t quota_bytes = 0;       ///< of device memory in gpu_out_of_core; 0: as the device is
};

enum class better { lower, higher };

/// "At least `factor` times better than `peer`, measured in the same run."
struct ratio_target {
  std::string peer;
  double factor;
};

/// "At most `amount` more than `peer`, measured in the same run", for rows of which less is better.
struct margin_target {
  std::string peer;
  double amount;
};

/// A line of the table and what is asked of it.
struct row {
  std::string name;  ///< "group" or "group/figure"
  std::string unit;
  better direction = better::lower;
  std::optional<double> bound{};  ///< for troupe, in `unit`
  std::vector<ratio_target> ratios{};
  std::vector<margin_target> margins{};
  bool by_worst = false;  ///< the bound holds for each turn, not for the median alone
  bool is_proof = false;  ///< a bound that does not hold is a problem: the run has failed
};

/// Where a turn happens.
enum class stage {
  shared,     ///< in this process, contenders started once and paused between turns
  unstarted,  ///< in this process, the measurement starts and stops the contender itself
  child,      ///< each turn in a fresh process: for memory and idle time, which earlier turns would colour
};

/// The contenders that take part: task runtimes, asked for by default; what joins processes; troupe alone, with faults.
enum class family { tasks, net, faults };

/// Figures of a group, one per row, in order; nothing where the contender does not support it.
using figures = std::vector<std::optional<double>>;

/// Rows that one measurement gives together.
struct group {
  std::string name;
  std::string about;
  std::vector<row> rows;
  purpose why = purpose::small_tasks;
  stage where = stage::shared;
  std::function<figures(contender&, const settings&)> measure;
  std::function<void(contender&)> verify{};  ///< once per contender, untimed; throws `wrong_answer`
  int repetitions_max = 1000;                ///< where one alone takes long
  bool warms_up = true;                      ///< a first turn that does not count
  family of = family::tasks;
};

struct summary {
  double median = 0;
  double min = 0;
  double max = 0;
};

struct row_result {
  row spec;
  std::map<std::string, summary> by_contender;
  std::optional<bool> met;  ///< nothing: no target, or a peer that the target names was not measured

  [[nodiscard]] const summary* of(const std::string& contender) const;
  /// How many times better troupe is than this peer.
  [[nodiscard]] std::optional<double> advantage_over(const std::string& peer) const;
};

struct outcome {
  std::vector<row_result> rows;
  std::vector<std::string> problems;  ///< contenders that failed, with what they said
};

/// Notes what could not be measured here, and why; no failure. Said once, below the table.
void note_absent(const std::string&);
std::vector<std::string> noted_absences();

/// Reads what a child process of `run_child_turn` has written.
figures figures_in(const std::string& output);

outcome run_group(const group&, const std::vector<std::unique_ptr<contender>>&, const settings&);

/// Does what a child process of `stage::child` is for: one turn, figures on stdout. Returns the exit code.
int run_child_turn(const group&, contender&, const settings&);

}  // namespace bench
