// Budgets, limits, small disks, strangers.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "shortage.hpp"

#include "scene.hpp"
#include "tests/support/strangers.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace bench {

namespace {

using test::clock;
constexpr std::size_t MiB = 1 << 20;

/// The worker that is short of something. What `how` asks for may not be allowed here.
scene with_a_poor_one(const test::child_options& how) {
  auto rt = std::make_unique<troupe::runtime>(test::owner_options(cluster_secret()));
  const auto address = rt->addresses().front();
  return {std::move(rt), 1, [how, address](int i) {
            return std::make_unique<test::worker>(worker_name(i), cluster_secret(), address, "127.0.0.1:0", how);
          }};
}

const scope anywhere = workers(1) | scope::here();

/// The most address space that a process has had, in bytes.
std::size_t peak_of(pid_t id) {
  std::ifstream status("/proc/" + std::to_string(id) + "/status");
  for (std::string word; status >> word;)
    if (std::size_t kib = 0; word == "VmPeak:" && status >> kib) return kib << 10;
  return 0;
}

/// `steps` of each chain; fails if the worker has never had most of what there is, for then it was not short of
/// anything.
template <class F>
aftermath work_through(const test::child_options& how, const work_load& what, int steps, F&& was_short) {
  scene s = with_a_poor_one(how);
  double share = 0;
  auto all = s.survive(what, [&](chains& work) {
    const auto ran = s.at(0).ran();
    aftermath found{.flows = 0};
    bool is_short = false;
    for (int round = 0; round < 5 && !is_short; ++round) {  // where it has little of the work, more of it
      work.grow(steps, anywhere);
      found.flows = std::max(*found.flows, longest_pause(s.rt(), work));
      if (!s.process(0).is_running()) return found;  // of what it had run nobody can tell
      is_short = was_short(s.at(0));
    }
    if (!is_short) throw std::runtime_error("it was short of nothing");
    share = 100 * static_cast<double>(s.at(0).ran() - ran) / static_cast<double>(work.spawned());
    return found;
  });
  all.more = {share};
  return all;
}

bool had_most_of_a_mib(test::worker& w) { return w.most() >= 15 * MiB / 16; }

}  // namespace

aftermath out_of_memory() {
  const work_load what{.results = chains::results::stay_there, .count = 64, .us = 300, .width = 8192};
  return work_through(test::with_memory(MiB), what, 40, had_most_of_a_mib);
}

aftermath out_of_address_space() {
  // The program's memory before it has any work.
  const auto used = [] {
    test::worker idle("idle", cluster_secret(), "127.0.0.1:1");
    idle.report();
    return peak_of(idle.process.id());
  }();
  test::child_options how;
  how.address_space_max = used + 300 * MiB;
  // 768 MiB, and long enough to be worth sending 4 of them.
  const work_load what{.results = chains::results::stay_there, .count = 192, .us = 15'000, .width = 1 << 19};
  return work_through(how, what, 2, [&](test::worker& w) {
    return peak_of(w.process.id()) >= how.address_space_max - 64 * MiB;  // more is asked for at once than a tile
  });
}

aftermath out_of_disk() {
  const own_folder folder;
  const auto disk = (folder.path() / "disk").string();
  std::filesystem::create_directory(disk);
  test::child_options how = test::with_memory(MiB, disk);
  how.small_disk = disk;
  how.small_disk_bytes = 2 * MiB;
  try {
    test::run({"true"}, how);
  } catch (const std::exception& e) {
    throw missing(std::string("a disk of its own, for which CAP_SYS_ADMIN is needed: ") + e.what());
  }
  const work_load what{.results = chains::results::stay_there, .count = 128, .us = 20, .width = 8192};
  return work_through(how, what, 20, had_most_of_a_mib);
}

aftermath out_of_descriptors() {
  constexpr std::size_t few = 40;
  test::child_options how;
  how.descriptors_max = few;
  scene s = with_a_poor_one(how);
  const auto address = s.at(0).address();
  double in_again = 0;
  auto all = s.survive({.us = 500}, [&](chains& work) {
    aftermath found{.flows = 0};
    {
      test::strangers_at strangers(address, 200);
      for (int round = 0; round < 3; ++round) {
        strangers.come_again();
        if (s.process(0).facts().descriptors + 1 < few) throw std::runtime_error("they have left it descriptors");
        work.grow(40, anywhere);
        found.flows = std::max(*found.flows, longest_pause(s.rt(), work));
      }
      strangers.leave();
    }
    const auto gone = clock::now();
    test::worker late("late", cluster_secret(), address);  // of which only that worker is told
    if (!s.rt().wait_for_nodes(2, 20s)) throw wrong_answer("nobody gets in any more");
    in_again = ms_since(gone);
    late.process.end_input();
    late.process.wait();
    await(s.rt(), "it has left", [&] { return !test::is_there(s.rt(), "late"); });
    return found;
  });
  all.more = {in_again};
  return all;
}

}  // namespace bench
