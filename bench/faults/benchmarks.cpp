// Rows about faults.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "benchmarks.hpp"

#include "clocks.hpp"
#include "killing.hpp"
#include "shortage.hpp"
#include "silence.hpp"
#include "tests/support/netns.hpp"

#include <chrono>
#include <functional>
#include <string>
#include <utility>

namespace bench {

namespace {

using namespace std::chrono_literals;
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

/// A fault: what is asked of it, and what it has beside that.
struct fault {
  std::string name, about;
  std::function<aftermath()> happens;
  std::optional<double> detected_max{};  ///< nothing: nobody is to be given up
  bool goes_on = true;                   ///< work does
  std::vector<figure> more{};
  int repetitions = 3;  ///< at most, for each takes seconds
};

std::vector<row> rows_of(const fault& f) {
  std::vector<figure> all;
  if (f.goes_on) all.insert(all.end(), {{"lost", "tasks", 0}, {"wrong", "results", 0}});
  if (f.detected_max) all.push_back({"detected", "ms", f.detected_max});
  if (f.goes_on) all.push_back({"flows", "ms", flows_ms});
  all.insert(all.end(),
             {{"memory", "KiB", 0}, {"descriptors", "fds", 0}, {"threads", "threads", 0}, {"slots", "slots", 0}});
  all.insert(all.end(), f.more.begin(), f.more.end());
  std::vector<row> rows;
  for (const auto& each : all)
    rows.push_back({.name = "fault_" + f.name + "/" + each.what,
                    .unit = each.unit,
                    .bound = each.at_most,
                    .by_worst = true,
                    .is_proof = each.what == "lost" || each.what == "wrong"});
  return rows;
}

figures figures_of(const fault& f, const aftermath& a) {
  figures all;
  if (f.goes_on) all.insert(all.end(), {a.lost, a.wrong});
  if (f.detected_max) all.push_back(a.detected);
  if (f.goes_on) all.push_back(a.flows);
  all.insert(all.end(), {a.left.kib, a.left.descriptors, a.left.threads, a.left.slots});
  all.insert(all.end(), a.more.begin(), a.more.end());
  return all;
}

group group_of(const fault& f) {
  group all{"fault_" + f.name, f.about, rows_of(f), {}, stage::unstarted, {}, {}, f.repetitions, false, family::faults};
  all.measure = [f](contender&, const settings&) { return figures_of(f, f.happens()); };
  return all;
}

std::vector<fault> deaths(const settings& how) {
  const auto job = how.quick ? 5s : 60s;
  return {
      {"kill_mid_task", "SIGKILL while it runs tasks", kill_mid_task, killed_ms},
      {"kill_mid_transfer", "SIGKILL while a tile goes to it", kill_mid_transfer, killed_ms},
      {"kill_unacknowledged", "SIGKILL when its results are on their way", kill_unacknowledged, killed_ms},
      {.name = "kill_every_2s",
       .about = "SIGKILL every 2 s of a job of " + std::to_string(job.count()) + " s, the worst of all",
       .happens = [job] { return kill_again_and_again(job); },
       .detected_max = killed_ms,
       .more = {{"kills", "kills"}, {"grows", "KiB/kill"}},
       .repetitions = 1},
      {"restart",
       "SIGKILL, and another process at the same address",
       restart_at_the_same_address,
       killed_ms,
       true,
       {{"again"}}},
      {"owner_death", "SIGKILL of the owner", owner_dies, {}, false, {{"freed", "ms", silent_ms}}},
      {"crowd",
       "10 workers join at once, 7 of them are killed at once",
       a_crowd_comes_and_goes,
       killed_ms,
       true,
       {{"joined"}}},
  };
}

std::vector<fault> silences(const settings& how) {
  const auto stopped = how.quick ? 5s : 20s;
  const auto seconds = std::to_string(stopped.count());
  return {
      {"stop_2s", "SIGSTOP for 2 s", stop_briefly},
      {.name = "stop_" + seconds + "s",
       .about = "SIGSTOP for " + seconds + " s",
       .happens = [stopped] { return stop_for_long(stopped); },
       .detected_max = silent_ms,
       .more = {{"again"}},
       .repetitions = 1},
      {.name = "resets",
       .about = "a reset of all connections every 0.5 s",
       .happens = [n = how.quick ? 4 : 20] { return resets(n); },
       .repetitions = 1},
      {.name = "late",
       .about = "messages that are up to 30 ms late, overtaken by others, sent twice",
       .happens = [n = how.quick ? 2 : 6] { return late_and_twice(n); }},
  };
}

std::vector<fault> shortages() {
  const figure share{"share", "%"};
  return {
      {"no_memory", "arrays need four times the memory that it has for them", out_of_memory, {}, true, {share}},
      {"no_address_space", "the system gives it no more memory", out_of_address_space, {}, true, {share}},
      {"no_disk", "neither memory nor disk have room", out_of_disk, {}, true, {share}},
      {"no_descriptors", "200 strangers have taken all its descriptors", out_of_descriptors, {}, true, {{"in_again"}}},
  };
}

group clock_steps() {
  const fault f{"clock_steps", "clocks are set forward and back by an hour", clocks_are_set};
  auto all = group_of(f);
  all.measure = [f](contender&, const settings& how) {
    return has_own_clock() ? figures_of(f, f.happens()) : in_a_process_with_a_clock("fault_" + f.name, how);
  };
  return all;
}

std::vector<fault> networks() {
  const auto cut = [](const char* name, const char* about, silence what) {
    return fault{name, about, [what] { return partition(what); }, silent_ms, true, {{"again"}}};
  };
  return {cut("partition", "nothing gets to it or comes from it", silence::both_ways),
          cut("unheard", "nothing comes from it", silence::unheard),
          cut("deaf", "nothing gets to it", silence::deaf),
          {"slow_link", "one of two workers behind 10 Mbit/s", slow_link, {}, true, {{"done"}}}};
}

}  // namespace

std::vector<group> fault_groups(const settings& how) {
  std::vector<group> all;
  const auto add = [&all](const std::vector<fault>& some) {
    for (const auto& each : some) all.push_back(group_of(each));
  };
  add(deaths(how));
  add(silences(how));
  add(shortages());
  all.push_back(clock_steps());
  if (const auto why = test::network::why_not(); why.empty())
    add(networks());
  else
    note_absent("faults of networks: " + why);
  return all;
}

std::vector<std::unique_ptr<contender>> fault_contenders() {
  std::vector<std::unique_ptr<contender>> all;
  all.push_back(std::make_unique<victim>());
  return all;
}

}  // namespace bench
