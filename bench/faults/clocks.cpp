// The clock of one process, by a library in front of the C library's.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "clocks.hpp"

#include "scene.hpp"

#include <dlfcn.h>
#include <cmath>
#include <ctime>

namespace bench {

namespace {

using setter = void (*)(long);
setter own_clock() { return reinterpret_cast<setter>(dlsym(RTLD_DEFAULT, "troupe_test_set_clock")); }

/// The clock shows what it was set to, a minute for a slow machine.
void expect_clock(long shown, long wanted) {
  if (std::labs(shown - wanted) > 60) throw std::runtime_error("a clock could not be set");
}

}  // namespace

bool has_own_clock() { return own_clock() != nullptr; }

void set_own_clock(long seconds) {
  if (const auto set = own_clock()) set(seconds);
}

std::optional<std::string> answer_about_clock(const std::string& line) {
  if (!line.starts_with("clock ")) return {};
  set_own_clock(std::stol(line.substr(6)));
  return "clock " + std::to_string(std::time(nullptr));
}

aftermath clocks_are_set() {
  scene s(2);
  return s.survive({.us = 500}, [&](chains& home) {
    chains stays(s.rt(), chains::results::stay_there, 8, 500);
    const auto ran = s.at(0).ran() + s.at(1).ran();
    const auto before = s.rt().nodes();
    const long now = static_cast<long>(std::time(nullptr));
    aftermath found{.flows = 0};
    for (int step = 0; step < 12; ++step) {
      for (auto* work : {&stays, &home}) work->grow(20, workers(2));
      const long mine = (step % 3 - 1) * 3600L, theirs = (step % 4 - 2) * 3600L;
      set_own_clock(mine);
      s.process(0).tell("clock " + std::to_string(theirs));
      expect_clock(std::stol(s.process(0).line_after("clock ")), now + theirs);
      expect_clock(static_cast<long>(std::time(nullptr)), now + mine);
      found.flows = std::max(*found.flows, longest_pause(s.rt(), home));
    }
    set_own_clock(0);
    check(s.rt(), stays);
    if (s.at(0).ran() + s.at(1).ran() - ran != stays.spawned() + home.spawned())
      throw wrong_answer("a task was repeated or lost");
    const auto after = s.rt().nodes();
    for (std::size_t i = 0; i < before.size(); ++i)
      if (after.size() != before.size() || after[i].id != before[i].id) throw wrong_answer("somebody was given up");
    return found;
  });
}

figures in_a_process_with_a_clock([[maybe_unused]] const std::string& group, [[maybe_unused]] const settings& how) {
#if defined(TROUPE_BENCH_CLOCK)
  std::vector<std::string> words{"/proc/self/exe", "--turn", group, "troupe"};
  if (how.quick) words.emplace_back("--quick");
  test::child_options before_all;
  before_all.environment.emplace_back("LD_PRELOAD=" TROUPE_BENCH_CLOCK);
  const auto done = test::run(words, before_all, 120s);
  if (done.how != test::ended_with(0)) throw std::runtime_error("its process said: " + done.out + done.err);
  return figures_in(done.out);
#else
  throw missing("a library that sets clocks: it is not made for sanitizers");
#endif
}

}  // namespace bench
