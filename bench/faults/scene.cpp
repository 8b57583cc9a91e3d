// Starting, watching and checking of scene.hpp.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "scene.hpp"

#include <sched.h>
#include <algorithm>
#include <stdexcept>
#include <thread>
#include <utility>

namespace bench {

namespace {

/// Threads of a runtime stay where the thread was that made it.
std::unique_ptr<troupe::runtime> owner_on(const test::network& net) {
  std::unique_ptr<troupe::runtime> rt;
  std::exception_ptr failed;
  std::thread([&] {
    try {
      if (setns(net.on(0).net_namespace, CLONE_NEWNET) != 0) throw std::runtime_error("cannot enter a namespace");
      auto options = test::owner_options(cluster_secret());
      options.cluster.listen = {net.address(0) + ":4711"};
      rt = std::make_unique<troupe::runtime>(std::move(options));
    } catch (...) {
      failed = std::current_exception();
    }
  }).join();
  if (failed) std::rethrow_exception(failed);
  return rt;
}

bool ended_well(const troupe::future<void>& f) {
  try {
    f.get();
    return true;
  } catch (const troupe::error&) {
    return false;
  }
}

}  // namespace

double ms_since(test::clock::time_point from) { return test::seconds_since(from) * 1e3; }

std::uint16_t port_of(const std::string& address) {
  return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
}

void count(const troupe::runtime& rt, const chains& work, aftermath& found) {
  test::comes_true(
      rt, [&] { return work.finished() == work.spawned(); }, 60s);
  found.lost = static_cast<double>(
      std::ranges::count_if(work.tasks(), [](const auto& f) { return !f.is_ready() || !ended_well(f); }));
  if (*found.lost == 0) found.wrong = work.wrong();
}

void check(const troupe::runtime& rt, const chains& work) {
  aftermath found;
  count(rt, work, found);
  if (*found.lost != 0) throw wrong_answer(std::to_string(static_cast<int>(*found.lost)) + " tasks are lost");
  if (*found.wrong != 0) throw wrong_answer(std::to_string(static_cast<int>(*found.wrong)) + " results are wrong");
}

aftermath recovered(const troupe::runtime& rt, const std::string& name, test::clock::time_point since,
                    const chains& work) {
  await(rt, name + " is gone", [&] { return !test::is_there(rt, name); });
  aftermath found;
  found.detected = ms_since(since);
  if (work.finished() == work.spawned()) throw std::runtime_error("there was too little work: it was done before");
  found.flows = flows_again(work);
  return found;
}

double flows_again(const chains& work) {
  const auto begin = test::clock::now();
  if (!work.first_in_line_end(30s)) throw wrong_answer("work does not flow again");
  return ms_since(begin);
}

double longest_pause(const troupe::runtime& rt, const chains& work) {
  double longest = 0;
  auto last = test::clock::now();
  std::uint64_t finished = work.finished();
  const auto ended = [&] {
    const auto now = work.finished();
    longest = std::max(longest, ms_since(last));
    if (now != finished) last = test::clock::now();
    finished = now;
    return now == work.spawned();
  };
  if (!test::comes_true(rt, ended, 60s)) throw wrong_answer("work has stopped");
  return longest;
}

std::string worker_name(int i) { return "worker" + std::to_string(i); }

scope workers(int count) {
  scope any = scope::at(worker_name(0));
  for (int i = 1; i < count; ++i) any = any | scope::at(worker_name(i));
  return any;
}

scene::scene(int count, troupe::options owner)
    : scene(std::make_unique<troupe::runtime>(std::move(owner)), count, [this](int i) {
        return std::make_unique<test::worker>(worker_name(i), cluster_secret(), rt().addresses().front());
      }) {}

scene::scene(const test::network& net, int count)
    : scene(owner_on(net), count, [&net](int i) {
        return std::make_unique<test::worker>(worker_name(i), cluster_secret(), net.address(0) + ":4711",
                                              net.address(i + 1) + ":4711", net.on(i + 1));
      }) {}

scene::scene(std::unique_ptr<troupe::runtime> owner, int count, starter start)
    : rt_(std::move(owner)), start_(std::move(start)) {
  for (int i = 0; i < count; ++i) workers_.push_back(start_(i));
  if (!rt().wait_for_nodes(static_cast<std::size_t>(count), 30s)) throw std::runtime_error("not all workers came");
}

void scene::start_again(int worker) {
  auto& child = workers_.at(static_cast<std::size_t>(worker));
  child.reset();
  child = start_(worker);
}

void scene::await_work(std::uint64_t tasks) const {
  await(rt(), "all work", [&] {
    const auto nodes = rt().nodes();
    return std::ranges::all_of(nodes, [&](const auto& n) { return n.tasks >= tasks; });
  });
}

aftermath scene::survive(const std::function<void(aftermath&)>& happens) {
  work_a_little(rt(), workers_);
  const ledger before(rt(), workers_);
  aftermath found;
  happens(found);
  for (std::size_t i = 0; i < workers_.size(); ++i)
    if (!workers_[i]->process.is_running()) start_again(static_cast<int>(i));
  if (!rt().wait_for_nodes(workers_.size(), 30s)) throw std::runtime_error("not all workers came again");
  work_a_little(rt(), workers_);
  found.left = before.compare();
  return found;
}

}  // namespace bench
