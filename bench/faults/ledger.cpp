// Looking into processes for ledger.hpp.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "ledger.hpp"

#include "scene.hpp"

#include <unistd.h>
#include <sstream>
#include <stdexcept>

namespace bench {

namespace {

/// A worker's word about itself: "nodes 1 unfinished 0 arrays 0 bytes 0".
struct holdings {
  std::uint64_t nodes = 0, unfinished = 0, arrays = 0, bytes = 0;

  explicit holdings(test::worker& of) {
    const auto text = of.report();
    std::istringstream words(text);
    std::string name;
    if (!(words >> name >> nodes >> name >> unfinished >> name >> arrays >> name >> bytes))
      throw std::runtime_error("a worker says of itself: " + text);
  }
  [[nodiscard]] bool is_empty() const { return unfinished == 0 && arrays == 0 && bytes == 0; }
};

double kib(std::uint64_t bytes, std::uint64_t arrays) {
  return bytes == 0 ? static_cast<double>(arrays) : static_cast<double>(bytes) / 1024;
}

double more(std::size_t now, std::size_t before) { return now > before ? static_cast<double>(now - before) : 0; }

}  // namespace

void work_a_little(troupe::runtime& rt, const std::vector<std::unique_ptr<test::worker>>& workers) {
  for (const auto which : {chains::results::come_home, chains::results::stay_there}) {
    chains some(rt, which, 4, 0);
    for (const auto& n : rt.nodes()) some.grow(5, scope::at(n.name));
    check(rt, some);
  }
  for (const auto& w : workers)
    await(rt, "all know each other and hold nothing", [&] {
      const holdings has(*w);
      return has.nodes == workers.size() && has.is_empty();
    });
}

ledger::ledger(troupe::runtime& rt, const workers& all) : rt_(rt), workers_(all), before_(facts()) {}

std::vector<test::process_facts> ledger::facts() const {
  std::vector<test::process_facts> all{test::facts_of(getpid())};
  for (const auto& w : workers_) all.push_back(w->process.facts());
  return all;
}

leftovers ledger::compare() const {
  leftovers left;
  test::comes_true(
      rt_, [&] { return (left = measure()).is_nothing(); }, 10s);
  return left;
}

leftovers ledger::measure() const {
  leftovers left;
  const auto now = facts();
  for (std::size_t i = 0; i < now.size(); ++i) {
    left.descriptors += more(now[i].descriptors, before_[i].descriptors);
    left.threads += more(now[i].threads, before_[i].threads);
  }
  const auto mine = rt_.report();
  left.kib = kib(mine.bytes_allocated, mine.arrays);
  left.slots = static_cast<double>(mine.spawned - mine.finished);
  for (const auto& w : workers_) {
    const holdings has(*w);
    left.kib += kib(has.bytes, has.arrays);
    left.slots += static_cast<double>(has.unfinished);
  }
  if (!left.is_nothing()) return left;
  for (const auto& m : rt_.query_cluster(5s).members)
    left.slots += m.answered ? m.busy + static_cast<double>(m.queued) : 1;
  return left;
}

}  // namespace bench
