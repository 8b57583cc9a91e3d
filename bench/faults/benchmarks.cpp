// Rows about faults.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "benchmarks.hpp"

#include "killing.hpp"
#include "silence.hpp"

#include <functional>
#include <string>

namespace bench {

namespace {

constexpr double killed_ms = 300, silent_ms = 3500, flows_ms = 1000;

class victim final : public contender {
 public:
  std::string name() const override { return "troupe"; }
  std::string description() const override {
    return "troupe, an owner here and workers in processes of their own, one thread each, TLS";
  }
  void start(unsigned, purpose) override {}
  void stop() override {}
};

struct figure {
  std::string what, unit = "ms";
  std::optional<double> at_most{};
};

/// `repetitions`: at most, for each takes seconds.
group fault(const std::string& name, const std::string& about, const std::vector<figure>& rows, int repetitions,
            std::function<figures()> happens) {
  group all{"fault_" + name, about, {}, {}, stage::unstarted, {}, {}, repetitions, false, family::faults};
  for (const auto& each : rows)
    all.rows.push_back({all.name + "/" + each.what, each.unit, better::lower, each.at_most});
  all.measure = [happens = std::move(happens)](contender&, const settings&) { return happens(); };
  return all;
}

std::function<figures()> both(recovery (*happens)()) {
  return [happens]() -> figures {
    const auto found = happens();
    return {found.detected, found.flows};
  };
}

}  // namespace

std::vector<group> fault_groups(const settings& how) {
  const figure killed{"detected", "ms", killed_ms}, silent{"detected", "ms", silent_ms}, flows{"flows", "ms", flows_ms},
      again{"again"};
  const auto job = how.quick ? 5s : 60s;
  const auto stopped = how.quick ? 5s : 20s;
  const int repetitions = how.quick ? 1 : 3;
  std::vector<group> all{
      fault("kill_mid_task", "SIGKILL while it runs tasks", {killed, flows}, repetitions, both(kill_mid_task)),
      fault("kill_mid_transfer", "SIGKILL while a tile goes to it", {killed, flows}, repetitions,
            both(kill_mid_transfer)),
      fault("kill_unacknowledged", "SIGKILL when its results are on their way", {killed, flows}, repetitions,
            both(kill_unacknowledged)),
      fault("kill_every_2s", "SIGKILL every 2 s of a job of " + std::to_string(job.count()) + " s, the worst of all",
            {killed, flows, {"kills", "kills"}, {"left_open", "fds+threads", 0}}, 1,
            [job] { return kill_again_and_again(job); }),
      fault("restart", "SIGKILL, and another process at the same address", {killed, flows, again}, repetitions,
            restart_at_the_same_address),
      fault("owner_death", "SIGKILL of the owner", {{"freed", "ms", silent_ms}}, repetitions,
            []() -> figures { return {owner_dies()}; }),
      fault("crowd", "10 workers join at once, 7 of them are killed at once", {{"joined"}, killed, flows}, repetitions,
            a_crowd_comes_and_goes),
      fault("stop_2s", "SIGSTOP for 2 s", {flows}, repetitions, stop_briefly),
      fault("stop_" + std::to_string(stopped.count()) + "s", "SIGSTOP for " + std::to_string(stopped.count()) + " s",
            {silent, flows, again}, 1, [stopped] { return stop_for_long(stopped); }),
      fault("resets", "a reset of all connections every 0.5 s", {{"pause", "ms", flows_ms}}, 1,
            [n = how.quick ? 4 : 20] { return resets(n); }),
  };
  if (const auto why = test::network::why_not(); !why.empty()) {
    note_absent("faults of networks: " + why);
    return all;
  }
  const auto cut = [&](const char* name, const char* about, silence what) {
    all.push_back(fault(name, about, {silent, flows, again}, repetitions, [what] { return partition(what); }));
  };
  cut("partition", "nothing gets to it or comes from it", silence::both_ways);
  cut("unheard", "nothing comes from it", silence::unheard);
  cut("deaf", "nothing gets to it", silence::deaf);
  all.push_back(fault("slow_link", "one of two workers behind 10 Mbit/s", {{"pause", "ms", flows_ms}, {"done"}},
                      repetitions, slow_link));
  return all;
}

std::vector<std::unique_ptr<contender>> fault_contenders() {
  std::vector<std::unique_ptr<contender>> all;
  all.push_back(std::make_unique<victim>());
  return all;
}

}  // namespace bench
