// What this file is for: runs a plan, lets the oracle run it, and compares all data and all outcomes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "trial.hpp"

#include <algorithm>
#include <cstdio>
#include <latch>
#include <memory>
#include <thread>

#include "client.hpp"
#include "oracle.hpp"
#include "watchdog.hpp"

namespace mixed {

namespace {

using outcome = observation::kind;

void print_report(session& s) {
  if (!s.has_runtime()) return;
  const troupe::runtime_report r = s.runtime().report();
  std::fprintf(
      stderr, "report: spawned %llu, finished %llu, turns %llu, records %llu, threads %d, bytes %llu (most %llu)\n",
      static_cast<unsigned long long>(r.spawned), static_cast<unsigned long long>(r.finished),
      static_cast<unsigned long long>(r.scheduling_passes), static_cast<unsigned long long>(r.records), r.threads,
      static_cast<unsigned long long>(r.bytes_allocated), static_cast<unsigned long long>(r.bytes_allocated_max));
  for (const troupe::executor_report& e : r.executors)
    std::fprintf(stderr, "  %s: %d slots, %llu queued, %llu tasks, %llu failed\n", e.name.c_str(), e.slots,
                 static_cast<unsigned long long>(e.queued), static_cast<unsigned long long>(e.tasks),
                 static_cast<unsigned long long>(e.failed));
  for (const troupe::resource& free : r.resources_free)
    std::fprintf(stderr, "  %s: %g free\n", free.name.c_str(), free.amount);
}

// Whether what was seen is what the oracle says.
bool agrees(const operation& op, const observation& seen, const observation& said) {
  if (seen.what == outcome::none) return true;
  const bool any_error = op.what == operation::kind::each || op.what == operation::kind::host ||
                         op.what == operation::kind::wait || op.what == operation::kind::await_two ||
                         op.stopping == operation::stop::before;
  // A task that depends on a cancelled one is told so.
  if (said.what == outcome::poisoned && seen.what == outcome::cancelled) return true;
  if (said.is_error()) return any_error ? seen.is_error() : seen.what == said.what;
  return seen.what == said.what && (seen.what != outcome::value || seen.number == said.number);
}

class judge {
 public:
  explicit judge(session& s) : all_(s) {}

  void outcomes(std::size_t client, const std::vector<observation>& seen, const std::vector<observation>& said) {
    const std::vector<operation>& list = all_.about().clients[client].operations;
    for (std::size_t i = 0; i < list.size(); ++i)
      if (!agrees(list[i], seen[i], said[i]))
        all_.complain("client " + std::to_string(client) + ", operation " + std::to_string(i) + " (" + text(list[i]) +
                      "): " + seen[i].text() + ", must be " + said[i].text());
  }
  // A reader of bad elements gets an error.
  void arrays(std::size_t client, const std::vector<contents>& seen, const std::vector<contents>& said) {
    for (std::size_t i = 0; i < said.size(); ++i) {
      const bool bad = std::find(said[i].bad.begin(), said[i].bad.end(), 1) != said[i].bad.end();
      const std::string name = "client " + std::to_string(client) + ", array " + std::to_string(i);
      if (i >= seen.size())
        all_.complain(name + " is not there");
      else if (bad || seen[i].data.empty())
        bad == seen[i].data.empty()
            ? void()
            : all_.complain(name + (bad ? " can be read, a task that changed it failed" : " cannot be read"));
      else
        data(name, seen[i].data, said[i].data);
    }
  }
  void data(const std::string& name, const std::vector<word>& seen, const std::vector<word>& said) {
    std::size_t wrong = 0, first = 0;
    for (std::size_t k = 0; k < said.size() && k < seen.size(); ++k)
      if (seen[k] != said[k] && wrong++ == 0) first = k;
    if (wrong != 0 || seen.size() != said.size())
      all_.complain(name + ": " + std::to_string(wrong) + " of " + std::to_string(said.size()) +
                    " elements are wrong, the first at offset " + std::to_string(first) + ": " +
                    std::to_string(seen[first]) + ", must be " + std::to_string(said[first]));
  }

 private:
  session& all_;
};

std::vector<word> read_common(const troupe::array<word, 1>& common) {
  std::vector<word> list;
  const auto v = common.read();
  for (troupe::index_t i = v.lo(0); i < v.hi(0); ++i) list.push_back(v.at(i));
  return list;
}

void expect_empty(session& all) {
  troupe::runtime& rt = all.runtime();
  rt.wait_all();
  troupe::runtime_report r = rt.report();
  // Devices let go of their copies a moment later.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while ((r.arrays != 0 || r.bytes_allocated != 0) && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    r = rt.report();
  }
  if (r.spawned != r.finished)
    all.complain("after wait_all " + std::to_string(r.finished) + " of " + std::to_string(r.spawned) + " are finished");
  if (r.arrays != 0) all.complain(std::to_string(r.arrays) + " arrays live on without a handle");
  if (r.bytes_allocated != 0) all.complain(std::to_string(r.bytes_allocated) + " bytes are held by no array");
  for (const troupe::resource& free : r.resources_free) {
    const int all_of_it = free.name == "licence" ? all.about().licences
                          : free.name == "token" ? all.about().tokens
                                                 : -1;
    if (all_of_it >= 0 && free.amount != all_of_it)
      all.complain(std::to_string(free.amount) + " of " + free.name + " are free at the end");
  }
}

}  // namespace

std::vector<std::string> try_plan(const plan& p, const trial_options& how) {
  session all(p, how.fault);
  const watchdog watching(
      how.patience, all.steps(), how.replay + "\n" + p.text(), [&] { all.describe(stderr); },
      [&] { print_report(all); });
  all.start();
  std::vector<std::unique_ptr<client>> clients;
  std::vector<expectation> said;
  oracle serial(p, {how.fault == planted::swapped_order ? static_cast<int>(p.clients[0].operations.size()) - 2 : -1});
  judge judge(all);
  {
    auto common = all.runtime().filled<word>({p.common}, troupe::tiles(p.common_tile), 0, "common");
    for (std::size_t i = 0; i < p.clients.size(); ++i) clients.push_back(std::make_unique<client>(all, i, common));
    std::latch start(static_cast<std::ptrdiff_t>(clients.size()));
    std::vector<std::thread> threads;
    for (auto& c : clients)
      threads.emplace_back([&start, &c] {
        start.arrive_and_wait();
        c->run();
      });
    for (std::thread& t : threads) t.join();
    if (how.fault == planted::lost_future) {  // what nobody keeps
      std::latch never(1);
      never.wait();
    }
    for (std::size_t i = 0; i < clients.size() && !all.given_up(); ++i) {
      said.push_back(serial.client(i, clients[i]->observations()));
      judge.outcomes(i, clients[i]->observations(), said[i].operations);
      judge.arrays(i, clients[i]->read_all(), said[i].arrays);
    }
    if (!all.given_up()) judge.data("the common array", read_common(common), serial.common());
  }
  for (auto& c : clients) c->drop();
  expect_empty(all);
  // The memory is the program's own again, with what tasks have made of it.
  for (std::size_t i = 0; i < said.size(); ++i) {
    for (std::size_t k = 0; k < clients[i]->renewed_memory().size(); ++k)
      if (!said[i].borrowed[k].empty())
        judge.data("client " + std::to_string(i) + ", memory that was borrowed, number " + std::to_string(k),
                   *clients[i]->renewed_memory()[k], said[i].borrowed[k]);
    for (const auto& [slot, memory] : clients[i]->memory()) {
      const contents& c = said[i].arrays[static_cast<std::size_t>(slot)];
      if (std::find(c.bad.begin(), c.bad.end(), 1) == c.bad.end())
        judge.data("client " + std::to_string(i) + ", memory that array " + std::to_string(slot) + " borrowed", *memory,
                   c.data);
    }
  }
  all.stop();
  if (all.alive() != 0) all.complain(std::to_string(all.alive()) + " closures and results live on");
  std::vector<std::string> complaints = all.complaints();
  if (complaints.size() > how.complaints_max) {
    complaints.push_back("... " + std::to_string(complaints.size() - how.complaints_max) + " more");
    complaints.erase(complaints.begin() + static_cast<std::ptrdiff_t>(how.complaints_max), complaints.end() - 1);
  }
  return complaints;
}

}  // namespace mixed
