// SIGKILL at every moment of a task's life.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "killing.hpp"

#include "scene.hpp"
#include "tests/support/proxy.hpp"

#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <optional>
#include <thread>

namespace bench {

namespace {

using test::clock;
using futures = std::vector<troupe::future<void>>;
constexpr auto home = chains::results::come_home;

long unfinished(const futures& all) {
  return std::ranges::count_if(all, [](const auto& f) { return !f.is_ready(); });
}

/// As `recovered`, of tasks that are no chains.
aftermath recovered_of(const troupe::runtime& rt, const std::string& victim, clock::time_point killed,
                       const futures& all) {
  aftermath found;
  await(rt, victim + " is gone", [&] { return !test::is_there(rt, victim); });
  found.detected = ms_since(killed);
  const auto known = clock::now();
  const auto left = unfinished(all);
  if (left == 0) throw std::runtime_error("there was too little work: it was done before");
  await(rt, "work flows", [&] { return unfinished(all) < left; });
  found.flows = ms_since(known);
  test::comes_true(
      rt, [&] { return unfinished(all) == 0; }, 60s);
  found.lost = static_cast<double>(unfinished(all));
  return found;
}

}  // namespace

aftermath kill_mid_task() {
  scene s(2);
  return s.survive({}, [&](chains& work) {
    work.grow(100, workers(2));
    s.await_work();
    const auto killed = clock::now();
    s.process(0).signal(SIGKILL);
    return recovered(s.rt(), worker_name(0), killed, work);
  });
}

aftermath kill_mid_transfer() {
  constexpr troupe::index_t tile = 1 << 19, tiles = 32;
  scene s(2);
  return s.survive([&](aftermath& found) {
    std::vector<std::uint64_t> start(static_cast<std::size_t>(tiles * tile));
    for (std::size_t i = 0; i < start.size(); ++i) start[i] = test::hashed(i, 9);  // which nothing compresses
    const auto data = s.rt().adopt(std::vector(start), {tiles * tile}, troupe::tiles(tile));
    futures all;
    for (troupe::index_t i = 0; i < tiles; ++i)  // all but the last element of each tile, so that it comes back
      all.push_back(s.rt().spawn({.where = workers(2)}, test::link_on,
                                 troupe::update(data.sub(troupe::box<1>{{i * tile}, {(i + 1) * tile - 1}})),
                                 std::uint64_t{1}, std::uint64_t{0}));
    std::string victim;
    const auto before = s.rt().nodes();
    await(s.rt(), "a tile is on its way", [&] {
      const auto now = s.rt().nodes();
      for (std::size_t i = 0; i < now.size(); ++i)
        if (now[i].bytes_out > before[i].bytes_out + 1'000'000) victim = now[i].name;
      return !victim.empty();
    });
    const auto killed = clock::now();
    s.process(victim == worker_name(0) ? 0 : 1).signal(SIGKILL);
    found = recovered_of(s.rt(), victim, killed, all);
    if (*found.lost != 0) return;
    const auto v = data.read();
    found.wrong = 0;
    for (troupe::index_t i = 0; i < tiles * tile; ++i) {
      const std::uint64_t was = start[static_cast<std::size_t>(i)];
      if (v(i) != (i % tile == tile - 1 ? was : test::hashed(was, 1))) ++*found.wrong;
    }
  });
}

aftermath kill_unacknowledged() {
  support::proxy between;
  auto rt = std::make_unique<troupe::runtime>(test::owner_options(cluster_secret()));
  const auto address = rt->addresses().front();
  between.forward_to(port_of(address));
  scene s(std::move(rt), 2, [&](int i) {
    return std::make_unique<test::worker>(worker_name(i), cluster_secret(), i == 0 ? between.address() : address);
  });
  return s.survive([&](aftermath& found) {
    // The data that tasks read is on both workers before anything is held back, so that nothing has to be asked for.
    const auto data = s.rt().filled<std::uint64_t>({100}, troupe::tiles(100), 3);
    const auto total = s.rt().filled<std::uint64_t>({1}, troupe::tiles(1), 0);
    futures all;
    const auto weigh_on = [&](const scope& where) {
      all.push_back(
          s.rt().spawn({.where = where}, test::weigh, troupe::read(data), troupe::reduce(total), std::uint64_t{100}));
    };
    for (const int i : {0, 1}) weigh_on(scope::at(worker_name(i)));
    s.rt().wait_all();
    between.hold_back(true);
    const auto ran = s.at(0).ran();
    for (int i = 0; i < 500; ++i) weigh_on(workers(2));
    await(s.rt(), "results that are held back", [&] { return s.at(0).ran() > ran + 2; });
    const auto killed = clock::now();
    s.process(0).signal(SIGKILL);
    s.process(0).wait();
    between.cut();
    between.hold_back(false);
    found = recovered_of(s.rt(), worker_name(0), killed, all);
    if (*found.lost == 0) found.wrong = total.read()(0) == 502 * 100 * test::hashed(3, 7) ? 0 : 1;
  });
}

aftermath kill_again_and_again(std::chrono::seconds job) {
  constexpr int known = 5;  // from then on it has what it needs
  scene s(1);
  const auto where = scope::at("mortal") | scope::at(worker_name(0));
  int kills = 0;
  std::size_t resident = 0;
  // Nothing is kept of what has been done: what this process grows by is left over of deaths.
  const auto kill_one = [&](aftermath& worst) {
    test::worker mortal("mortal", cluster_secret(), s.rt().addresses().front());
    if (!s.rt().wait_for_nodes(2, 20s)) throw std::runtime_error("it did not come");
    chains work(s.rt(), home, 8, 500);
    for (const auto born = clock::now(); clock::now() - born < 2s;) {
      work.grow(20, where);
      if (!s.rt().wait_all_for(20s)) throw wrong_answer("tasks are lost");
    }
    work.grow(60, where);
    const auto killed = clock::now();
    mortal.process.signal(SIGKILL);
    auto found = recovered(s.rt(), "mortal", killed, work);
    count(s.rt(), work, found);
    worst.detected = std::max(worst.detected, found.detected);
    worst.flows = std::max(worst.flows, found.flows);
    *worst.lost += *found.lost;
    *worst.wrong += found.wrong.value_or(0);
  };
  auto all = s.survive([&](aftermath& found) {
    found.lost = found.wrong = 0;
    for (const auto begin = clock::now(); clock::now() - begin < job;) {
      kill_one(found);
      if (++kills == known) resident = test::facts_of(getpid()).resident_bytes;
    }
  });
  all.more = {kills, {}};
  if (kills > known) {
    const auto now = test::facts_of(getpid()).resident_bytes;
    all.more[1] = now < resident ? 0 : static_cast<double>(now - resident) / 1024 / (kills - known);
  }
  return all;
}

aftermath restart_at_the_same_address() {
  std::string address;
  auto rt = std::make_unique<troupe::runtime>(test::owner_options(cluster_secret()));
  const auto home = rt->addresses().front();
  scene s(std::move(rt), 2, [&](int i) {
    auto one = std::make_unique<test::worker>(worker_name(i), cluster_secret(), home,
                                              i == 0 && !address.empty() ? address : "127.0.0.1:0");
    if (i == 0) address = one->address();
    return one;
  });
  const auto id_of = [&] {
    for (const auto& n : s.rt().nodes())
      if (n.name == worker_name(0)) return n.id;
    return std::string();
  };
  return s.survive({.us = 1'000}, [&](chains& work) {
    const auto id = id_of();
    work.grow(300, workers(2));
    s.await_work();
    const auto killed = clock::now();
    s.process(0).signal(SIGKILL);
    s.process(0).wait();
    s.start_again(0);
    await(s.rt(), "the first is gone", [&] { return id_of() != id; });
    aftermath found;
    found.detected = ms_since(killed);
    found.flows = flows_again(work);
    await(s.rt(), "the second is there", [&] { return !id_of().empty() && id_of() != id; });
    found.more = {ms_since(killed)};
    work.grow(5, scope::at(worker_name(0)));
    if (!s.rt().wait_all_for(60s)) throw wrong_answer("tasks are lost");
    if (s.at(0).ran() < 40) throw wrong_answer("the second has not run what it was given");
    return found;
  });
}

aftermath owner_dies() {
  test::worker one("one", cluster_secret(), "127.0.0.1:1");  // nobody is there: it is found, it does not find
  const auto kill_one = [&] {
    test::child owner({"/proc/self/exe", "owner", "boss", cluster_secret(), one.address()});
    owner.line_after("spawned");
    const auto ran = one.ran();
    while (one.ran() < ran + 5) std::this_thread::sleep_for(1ms);  // so as not to flood it with questions
    if (one.report().starts_with("nodes 0")) throw std::runtime_error("it has no owner");
    owner.signal(SIGKILL);
    const auto killed = clock::now();
    const std::string nothing = "nodes 0 unfinished 0 arrays 0 bytes 0";
    for (auto has = one.report(); has != nothing; has = one.report()) {
      if (ms_since(killed) > 20'000) throw wrong_answer("after 20 s it still has " + has);
      std::this_thread::sleep_for(1ms);
    }
    return ms_since(killed);
  };
  kill_one();  // what is made when it is first needed is there then
  const auto before = one.process.facts();
  aftermath found;
  found.more = {kill_one()};
  const auto more = [](std::size_t now, std::size_t then) { return now > then ? static_cast<double>(now - then) : 0; };
  for (const auto since = clock::now(); ms_since(since) < 10'000; std::this_thread::sleep_for(1ms)) {
    const auto now = one.process.facts();
    found.left.descriptors = more(now.descriptors, before.descriptors);
    found.left.threads = more(now.threads, before.threads);
    if (found.left.is_nothing()) break;
  }
  return found;
}

aftermath a_crowd_comes_and_goes() {
  constexpr int crowd = 10, dead = 7;
  const auto begin = clock::now();
  scene s(crowd);
  const double joined = ms_since(begin);
  auto all = s.survive({.count = 20, .us = 1'000}, [&](chains& work) {
    work.grow(100, workers(crowd));
    s.await_work(3);
    const auto killed = clock::now();
    for (int i = 0; i < dead; ++i) s.process(i).signal(SIGKILL);
    await(s.rt(), "seven are gone", [&] { return s.rt().nodes().size() == crowd - dead; });
    aftermath found;
    found.detected = ms_since(killed);
    const auto done = work.finished();
    const auto known = clock::now();
    await(s.rt(), "work flows", [&] { return work.finished() > done; });
    found.flows = ms_since(known);
    return found;
  });
  all.more = {joined};
  return all;
}

}  // namespace bench
