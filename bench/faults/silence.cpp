// SIGSTOP, dropped packets, slow links, resets.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "silence.hpp"

#include "tests/support/proxy.hpp"

#include <csignal>

namespace bench {

namespace {
using test::clock;

/// Lets so much time pass, as long as nobody comes or goes.
bool nobody_goes(const troupe::runtime& rt, std::chrono::milliseconds time) {
  const auto there = rt.nodes().size();
  return !test::comes_true(
      rt, [&] { return rt.nodes().size() != there; }, time);
}

}  // namespace

figures stop_briefly() {
  scene s(2);
  chains work(s.rt, chains::results::stay_there, 8, 1'000);
  work.grow(200, workers(2));
  s.await_work();
  s.process(0).signal(SIGSTOP);
  if (!nobody_goes(s.rt, 2s)) throw wrong_answer("it was given up");
  const auto ran = test::tasks_of(s.rt, worker_name(0));
  s.process(0).signal(SIGCONT);
  const auto goes_on = clock::now();
  await(s.rt, "it works again", [&] { return test::tasks_of(s.rt, worker_name(0)) > ran; });
  const double flows = ms_since(goes_on);
  check(s.rt, work);
  if (s.all[0]->ran() + s.all[1]->ran() != work.spawned()) throw wrong_answer("a task was repeated or lost");
  return {flows};
}

figures stop_for_long(std::chrono::seconds for_s) {
  scene s(2);
  chains work(s.rt, chains::results::come_home, 8, 2'000);
  work.grow(200, workers(2));
  s.await_work();
  const auto stopped = clock::now();
  s.process(0).signal(SIGSTOP);
  const auto found = recovered(s.rt, worker_name(0), stopped, work);
  nobody_goes(s.rt, std::chrono::duration_cast<std::chrono::milliseconds>(stopped + for_s - clock::now()));
  s.process(0).signal(SIGCONT);
  const auto goes_on = clock::now();
  await(s.rt, "it is taken in again", [&] { return test::is_there(s.rt, worker_name(0)); });
  const double again = ms_since(goes_on);
  const auto ran = s.all[0]->ran();
  work.grow(10, scope::at(worker_name(0)));
  check(s.rt, work);
  if (s.all[0]->ran() < ran + 80) throw wrong_answer("it has not run what it was given");
  return {found.detected, found.flows, again};
}

figures partition(silence how) {
  network_scene s(2);
  auto& rt = *s.rt;
  chains work(rt, chains::results::come_home, 8, 2'000);
  work.grow(200, workers(2));
  await(rt, "it works", [&] { return test::tasks_of(rt, worker_name(0)) > 50; });
  const auto cut = clock::now();
  if (how != silence::deaf)
    for (const int other : {0, 2}) s.net.drop(1, other);
  if (how != silence::unheard)
    for (const int other : {0, 2}) s.net.drop(other, 1);
  const auto found = recovered(rt, worker_name(0), cut, work);
  s.net.heal();
  const auto healed = clock::now();
  await(rt, "it is taken in again", [&] { return test::is_there(rt, worker_name(0)); });
  const double again = ms_since(healed);
  work.grow(10, scope::at(worker_name(0)));
  check(rt, work);
  return {found.detected, found.flows, again};
}

figures slow_link() {
  network_scene s(2);
  auto& rt = *s.rt;
  for (const int end : {0, 1}) s.net.slow_down(end == 0 ? 1 : 0, 10'000'000);
  const auto begin = clock::now();
  chains work(rt, chains::results::come_home, 8, 1'000);
  work.grow(100, workers(2));
  const double pause = longest_pause(rt, work), done = ms_since(begin);
  check(rt, work);
  if (rt.nodes().size() != 2) throw wrong_answer("it was given up");
  return {pause, done};
}

figures resets(int count) {
  support::proxy between;
  auto options = test::owner_options(cluster_secret());
  options.cluster.announce = {between.address()};
  troupe::runtime rt(std::move(options));
  const auto address = rt.addresses().front();
  between.forward_to(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  test::worker one("one", cluster_secret(), between.address(), "-");  // so that there is no other way to it
  if (!rt.wait_for_nodes(1, 20s)) throw std::runtime_error("it did not come");
  chains stays(rt, chains::results::stay_there, 4, 500), home(rt, chains::results::come_home, 4, 500);
  double longest = 0;
  for (int i = 0; i < count; ++i) {
    const auto since = clock::now();
    for (auto* work : {&stays, &home}) work->grow(20, scope::at("one"));
    if (!stays.first_in_line_end(10s)) throw wrong_answer("work has stopped");
    const auto reset = clock::now();
    between.cut();
    if (!rt.wait_all_for(20s)) throw wrong_answer("work has stopped after a reset");
    longest = std::max(longest, ms_since(reset));
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(since + 500ms - clock::now());
    if (!nobody_goes(rt, left)) throw wrong_answer("it was given up");
  }
  check(rt, stays);
  check(rt, home);
  if (one.ran() != stays.spawned() + home.spawned()) throw wrong_answer("a task was repeated or lost");
  return {longest};
}

}  // namespace bench
