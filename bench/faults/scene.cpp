// Starting, watching and checking of scene.hpp.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "scene.hpp"

#include <sched.h>
#include <algorithm>
#include <stdexcept>
#include <thread>

namespace bench {

double ms_since(test::clock::time_point from) { return test::seconds_since(from) * 1e3; }

void check(const troupe::runtime& rt, const chains& work) {
  const bool ended = test::comes_true(
      rt, [&] { return work.finished() == work.spawned(); }, 60s);
  if (!ended)
    throw wrong_answer(std::to_string(work.spawned() - work.finished()) + " of " + std::to_string(work.spawned()) +
                       " tasks are lost");
  if (const int wrong = work.wrong()) throw wrong_answer(std::to_string(wrong) + " results are wrong");
}

recovery recovered(const troupe::runtime& rt, const std::string& name, test::clock::time_point since,
                   const chains& work) {
  await(rt, name + " is gone", [&] { return !test::is_there(rt, name); });
  const double detected = ms_since(since);
  if (work.finished() == work.spawned()) throw std::runtime_error("there was too little work: it was done before");
  return {detected, flows_again(work)};
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

scene::scene(int count) {
  for (int i = 0; i < count; ++i)
    all.push_back(std::make_unique<test::worker>(worker_name(i), cluster_secret(), address()));
  if (!rt.wait_for_nodes(static_cast<std::size_t>(count), 20s)) throw std::runtime_error("not all workers came");
}

void scene::await_work(std::uint64_t tasks) const {
  await(rt, "all work", [&] {
    const auto nodes = rt.nodes();
    return std::ranges::all_of(nodes, [&](const auto& n) { return n.tasks >= tasks; });
  });
}

network_scene::network_scene(int count) : net(count + 1) {
  // Threads of a runtime stay where the thread was that made it.
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
  for (int i = 0; i < count; ++i)
    all.push_back(std::make_unique<test::worker>(worker_name(i), cluster_secret(), net.address(0) + ":4711",
                                                 net.address(i + 1) + ":4711", net.on(i + 1)));
  if (!rt->wait_for_nodes(static_cast<std::size_t>(count), 20s)) throw std::runtime_error("not all workers came");
}

}  // namespace bench
