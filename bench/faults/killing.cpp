// SIGKILL at every moment of a task's life.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "killing.hpp"

#include "tests/support/proxy.hpp"

#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <iostream>

namespace bench {

namespace {

using test::clock;
constexpr auto home = chains::results::come_home;

std::uint16_t port_of(const std::string& address) {
  return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
}

std::size_t things_open() {
  const auto now = test::facts_of(getpid());
  return now.descriptors + now.threads;
}

}  // namespace

recovery kill_mid_task() {
  scene s(2);
  chains work(s.rt, home, 8, 2'000);
  work.grow(100, workers(2));
  s.await_work();
  const auto killed = clock::now();
  s.process(0).signal(SIGKILL);
  const auto found = recovered(s.rt, worker_name(0), killed, work);
  check(s.rt, work);
  return found;
}

recovery kill_mid_transfer() {
  constexpr troupe::index_t tile = 1 << 19, tiles = 32;
  scene s(2);
  std::vector<std::uint64_t> start(static_cast<std::size_t>(tiles * tile));
  for (std::size_t i = 0; i < start.size(); ++i) start[i] = test::hashed(i, 9);  // which nothing compresses
  const auto data = s.rt.adopt(std::vector(start), {tiles * tile}, troupe::tiles(tile));
  std::vector<troupe::future<void>> all;
  for (troupe::index_t i = 0; i < tiles; ++i)  // all but the last element of each tile, so that it comes back
    all.push_back(s.rt.spawn({.where = workers(2)}, test::link_on,
                             troupe::update(data.sub(troupe::box<1>{{i * tile}, {(i + 1) * tile - 1}})),
                             std::uint64_t{1}, std::uint64_t{0}));
  std::string victim;
  await(s.rt, "a tile is on its way", [&] {
    for (const auto& n : s.rt.nodes())
      if (n.bytes_out > 1'000'000) victim = n.name;
    return !victim.empty();
  });
  const auto killed = clock::now();
  s.process(victim == worker_name(0) ? 0 : 1).signal(SIGKILL);
  await(s.rt, "it is gone", [&] { return !test::is_there(s.rt, victim); });
  const double detected = ms_since(killed);
  const auto known = clock::now();
  const auto unfinished = [&] { return std::ranges::count_if(all, [](const auto& f) { return !f.is_ready(); }); };
  const auto left = unfinished();
  await(s.rt, "work flows", [&] { return left == 0 || unfinished() < left; });
  const double flows = ms_since(known);
  if (!s.rt.wait_all_for(60s)) throw wrong_answer("tasks are lost");
  const auto v = data.read();
  for (troupe::index_t i = 0; i < tiles * tile; ++i) {
    const std::uint64_t was = start[static_cast<std::size_t>(i)];
    if (v(i) != (i % tile == tile - 1 ? was : test::hashed(was, 1))) throw wrong_answer("a result is wrong");
  }
  return {detected, flows};
}

recovery kill_unacknowledged() {
  support::proxy between;
  scene s(0);
  between.forward_to(port_of(s.address()));
  test::worker one("one", cluster_secret(), between.address());
  test::worker two("two", cluster_secret(), s.address());
  if (!s.rt.wait_for_nodes(2, 20s)) throw std::runtime_error("not all workers came");
  // What they read is on both before anything is held back, so that nothing has to be asked for.
  const auto data = s.rt.filled<std::uint64_t>({100}, troupe::tiles(100), 3);
  const auto total = s.rt.filled<std::uint64_t>({1}, troupe::tiles(1), 0);
  std::vector<troupe::future<void>> all;
  const auto weigh_on = [&](const scope& where) {
    all.push_back(
        s.rt.spawn({.where = where}, test::weigh, troupe::read(data), troupe::reduce(total), std::uint64_t{100}));
  };
  weigh_on(scope::at("one"));
  weigh_on(scope::at("two"));
  s.rt.wait_all();
  between.hold_back(true);
  for (int i = 0; i < 500; ++i) weigh_on(scope::at("one") | scope::at("two"));
  await(s.rt, "results that are held back", [&] { return one.ran() > 3; });
  const auto killed = clock::now();
  one.process.signal(SIGKILL);
  one.process.wait();
  between.cut();
  await(s.rt, "one is gone", [&] { return !test::is_there(s.rt, "one"); });
  const double detected = ms_since(killed);
  const auto known = clock::now();
  const auto unfinished = [&] { return std::ranges::count_if(all, [](const auto& f) { return !f.is_ready(); }); };
  const auto left = unfinished();
  if (left == 0) throw std::runtime_error("there was too little work: it was done before");
  await(s.rt, "work flows", [&] { return unfinished() < left; });
  const double flows = ms_since(known);
  if (!s.rt.wait_all_for(60s)) throw wrong_answer("tasks are lost");
  if (total.read()(0) != 502 * 100 * test::hashed(3, 7)) throw wrong_answer("a result counts twice, or not");
  return {detected, flows};
}

figures kill_again_and_again(std::chrono::seconds job) {
  scene s(1);
  recovery worst;
  int kills = 0;
  const auto before = things_open();
  {
    chains work(s.rt, home, 8, 500);
    for (const auto begin = clock::now(); clock::now() - begin < job; ++kills) {
      test::worker mortal("mortal", cluster_secret(), s.address());
      if (!s.rt.wait_for_nodes(2, 20s)) throw std::runtime_error("it did not come");
      const auto where = scope::at("mortal") | scope::at(worker_name(0));
      for (const auto born = clock::now(); clock::now() - born < 2s;) {
        work.grow(20, where);
        if (!s.rt.wait_all_for(20s)) throw wrong_answer("tasks are lost");
      }
      work.grow(60, where);
      const auto killed = clock::now();
      mortal.process.signal(SIGKILL);
      const auto found = recovered(s.rt, "mortal", killed, work);
      worst.detected = std::max(worst.detected, found.detected);
      worst.flows = std::max(worst.flows, found.flows);
    }
    check(s.rt, work);
  }
  test::comes_true(
      s.rt, [&] { return things_open() <= before; }, 10s);
  const auto after = things_open();
  return {worst.detected, worst.flows, static_cast<double>(kills),
          after > before ? static_cast<double>(after - before) : 0.0};
}

figures restart_at_the_same_address() {
  scene s(1);
  auto first = std::make_unique<test::worker>("again", cluster_secret(), s.address());
  const auto address = first->address();
  if (!s.rt.wait_for_nodes(2, 20s)) throw std::runtime_error("it did not come");
  const auto id_of = [&] {
    for (const auto& n : s.rt.nodes())
      if (n.name == "again") return n.id;
    return std::string();
  };
  const auto id = id_of();
  chains work(s.rt, home, 8, 1'000);
  work.grow(300, scope::at("again") | scope::at(worker_name(0)));
  await(s.rt, "it works", [&] { return test::tasks_of(s.rt, "again") > 50; });
  const auto killed = clock::now();
  first->process.signal(SIGKILL);
  first->process.wait();
  test::worker second("again", cluster_secret(), s.address(), address);
  await(s.rt, "the first is gone", [&] { return id_of() != id; });
  const double detected = ms_since(killed), flows = flows_again(work);
  await(s.rt, "the second is there", [&] { return !id_of().empty(); });
  const double there = ms_since(killed);
  work.grow(5, scope::at("again"));
  check(s.rt, work);
  if (second.ran() < 40) throw wrong_answer("the second has not run what it was given");
  return {detected, flows, there};
}

double owner_dies() {
  test::worker one("one", cluster_secret(), "127.0.0.1:1");  // nobody is there: it is found, it does not find
  test::child owner({"/proc/self/exe", "owner", cluster_secret(), one.address()});
  owner.line_after("spawned");
  while (one.ran() < 5) {  // each time it answers
  }
  const std::string nothing = "nodes 0 unfinished 0 arrays 0 bytes 0";
  if (one.report().starts_with("nodes 0")) throw std::runtime_error("it has no owner");
  const auto killed = clock::now();
  owner.signal(SIGKILL);
  while (one.report() != nothing)
    if (ms_since(killed) > 20'000) throw wrong_answer("after 20 s it still has " + one.report());
  return ms_since(killed);
}

int own_until_killed(const std::vector<std::string>& words) {
  auto options = test::node_options("owner", words.at(1));
  options.cluster.join = {words.at(2)};
  options.cluster.listen = {"127.0.0.1:0"};
  troupe::runtime rt(std::move(options));
  if (!rt.wait_for_nodes(1, 10s)) return 1;
  const auto there = scope::at(rt.nodes().front().name);
  const auto a = rt.filled<std::uint64_t>({1 << 20}, troupe::tiles(1 << 14), 1);
  for (std::uint64_t i = 0; i < 40; ++i)
    rt.for_each({.where = there}, troupe::grid(1 << 20), test::link_on, troupe::update(a), i, std::uint64_t{5'000});
  std::printf("spawned\n");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
  }
  return 0;
}

figures a_crowd_comes_and_goes() {
  constexpr int crowd = 10, dead = 7;
  scene s(0);
  const auto begin = clock::now();
  for (int i = 0; i < crowd; ++i)
    s.all.push_back(std::make_unique<test::worker>(worker_name(i), cluster_secret(), s.address()));
  if (!s.rt.wait_for_nodes(crowd, 30s)) throw std::runtime_error("not all workers came");
  const double joined = ms_since(begin);
  chains work(s.rt, home, 20, 1'000);
  work.grow(100, workers(crowd));
  s.await_work(3);
  const auto killed = clock::now();
  for (int i = 0; i < dead; ++i) s.process(i).signal(SIGKILL);
  await(s.rt, "seven are gone", [&] { return s.rt.nodes().size() == crowd - dead; });
  const double detected = ms_since(killed);
  const auto done = work.finished();
  const auto known = clock::now();
  await(s.rt, "work flows", [&] { return work.finished() > done; });
  const double flows = ms_since(known);
  check(s.rt, work);
  return {joined, detected, flows};
}

}  // namespace bench
