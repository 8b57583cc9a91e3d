// SIGSTOP, dropped packets, slow links, resets, messages that are late.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "silence.hpp"

#include "scene.hpp"
#include "tests/support/proxy.hpp"

#include <algorithm>
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

/// An owner and a worker that have no other way to each other than a proxy.
struct behind_a_proxy {
  support::proxy between;
  scene both;

  behind_a_proxy()
      : both(owner(between), 1, [this](int i) {
          return std::make_unique<test::worker>(worker_name(i), cluster_secret(), between.address(), "-");
        }) {}
  static std::unique_ptr<troupe::runtime> owner(support::proxy& between) {
    auto options = test::owner_options(cluster_secret());
    options.cluster.announce = {between.address()};
    auto rt = std::make_unique<troupe::runtime>(std::move(options));
    between.forward_to(port_of(rt->addresses().front()));
    return rt;
  }
};

}  // namespace

aftermath stop_briefly() {
  scene s(2);
  const work_load steady{.results = chains::results::stay_there, .us = 1'000};
  return s.survive(steady, [&](chains& work) {
    const auto ran_before = s.at(0).ran() + s.at(1).ran();
    work.grow(200, workers(2));
    s.await_work();
    s.process(0).signal(SIGSTOP);
    if (!nobody_goes(s.rt(), 2s)) throw wrong_answer("it was given up");
    const auto ran = test::tasks_of(s.rt(), worker_name(0));
    s.process(0).signal(SIGCONT);
    const auto goes_on = clock::now();
    await(s.rt(), "it works again", [&] { return test::tasks_of(s.rt(), worker_name(0)) > ran; });
    aftermath found;
    found.flows = ms_since(goes_on);
    if (!s.rt().wait_all_for(60s)) throw wrong_answer("work has stopped");
    if (s.at(0).ran() + s.at(1).ran() - ran_before != work.spawned()) throw wrong_answer("a task was repeated or lost");
    return found;
  });
}

aftermath stop_for_long(std::chrono::seconds for_s) {
  scene s(2);
  return s.survive({}, [&](chains& work) {
    work.grow(200, workers(2));
    s.await_work();
    const auto stopped = clock::now();
    s.process(0).signal(SIGSTOP);
    auto found = recovered(s.rt(), worker_name(0), stopped, work);
    nobody_goes(s.rt(), std::chrono::duration_cast<std::chrono::milliseconds>(stopped + for_s - clock::now()));
    s.process(0).signal(SIGCONT);
    const auto goes_on = clock::now();
    await(s.rt(), "it is taken in again", [&] { return test::is_there(s.rt(), worker_name(0)); });
    found.more = {ms_since(goes_on)};
    const auto ran = s.at(0).ran();
    work.grow(10, scope::at(worker_name(0)));
    if (!s.rt().wait_all_for(60s)) throw wrong_answer("work has stopped");
    if (s.at(0).ran() < ran + 80) throw wrong_answer("it has not run what it was given");
    return found;
  });
}

aftermath partition(silence how) {
  test::network net(3);
  scene s(net, 2);
  return s.survive({}, [&](chains& work) {
    work.grow(200, workers(2));
    s.await_work();
    const auto cut = clock::now();
    if (how != silence::deaf)
      for (const int other : {0, 2}) net.drop(1, other);
    if (how != silence::unheard)
      for (const int other : {0, 2}) net.drop(other, 1);
    auto found = recovered(s.rt(), worker_name(0), cut, work);
    net.heal();
    const auto healed = clock::now();
    await(s.rt(), "it is taken in again", [&] { return test::is_there(s.rt(), worker_name(0)); });
    found.more = {ms_since(healed)};
    work.grow(10, scope::at(worker_name(0)));
    return found;
  });
}

aftermath slow_link() {
  test::network net(3);
  scene s(net, 2);
  for (const int end : {0, 1}) net.slow_down(end, 10'000'000);
  return s.survive({.us = 1'000}, [&](chains& work) {
    const auto begin = clock::now();
    work.grow(100, workers(2));
    aftermath found;
    found.flows = longest_pause(s.rt(), work);
    found.more = {ms_since(begin)};
    if (s.rt().nodes().size() != 2) throw wrong_answer("it was given up");
    return found;
  });
}

aftermath resets(int count) {
  behind_a_proxy n;
  scene& s = n.both;
  const auto there = scope::at(worker_name(0));
  return s.survive({.count = 4, .us = 500}, [&](chains& home) {
    chains stays(s.rt(), chains::results::stay_there, 4, 500);
    const auto ran = s.at(0).ran();
    double longest = 0;
    for (int i = 0; i < count; ++i) {
      const auto since = clock::now();
      for (auto* work : {&stays, &home}) work->grow(20, there);
      if (!stays.first_in_line_end(10s)) throw wrong_answer("work has stopped");
      const auto reset = clock::now();
      n.between.cut();
      if (!s.rt().wait_all_for(20s)) throw wrong_answer("work has stopped after a reset");
      longest = std::max(longest, ms_since(reset));
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(since + 500ms - clock::now());
      if (!nobody_goes(s.rt(), left)) throw wrong_answer("it was given up");
    }
    check(s.rt(), stays);
    if (s.at(0).ran() - ran != stays.spawned() + home.spawned()) throw wrong_answer("a task was repeated or lost");
    aftermath found;
    found.flows = longest;
    return found;
  });
}

aftermath late_and_twice(int rounds) {
  behind_a_proxy n;
  scene& s = n.both;
  const auto there = scope::at(worker_name(0));
  const auto found = s.survive({.count = 4, .us = 500}, [&](chains& home) {
    chains stays(s.rt(), chains::results::stay_there, 4, 500);
    const auto ran = s.at(0).ran();
    n.between.delay(30ms);
    aftermath times{.flows = 0};
    const auto grow = [&] {  // of `home` each step is several messages that wait for each other
      stays.grow(20, there);
      home.grow(5, there);
    };
    for (int i = 0; i < rounds; ++i) {
      grow();
      if (!stays.first_in_line_end(10s)) throw wrong_answer("work has stopped");
      // The worker gets something and cannot say so: over the next connection that comes again.
      const auto has = s.at(0).ran();
      n.between.hold_back(true);
      grow();
      await(s.rt(), "tasks of which nothing is known", [&] { return s.at(0).ran() > has; });
      n.between.cut();
      n.between.hold_back(false);
      const auto cut = clock::now();
      for (const auto* work : {&stays, &home}) flows_again(*work);
      times.flows = std::max(*times.flows, ms_since(cut));
      if (!s.rt().wait_all_for(20s)) throw wrong_answer("work has stopped");
    }
    n.between.delay(0ms);
    check(s.rt(), stays);
    if (s.at(0).ran() - ran != stays.spawned() + home.spawned()) throw wrong_answer("a task was repeated or lost");
    if (s.rt().links().at(0).resets < static_cast<std::uint64_t>(rounds))
      throw std::runtime_error("nothing was sent again");
    return times;
  });
  return found;
}

}  // namespace bench
