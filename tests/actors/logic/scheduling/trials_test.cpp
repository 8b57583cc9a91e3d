// What this file is for: when a device that nobody knows is tried out, and that nobody has to wait for that.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/scheduling/trials.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <queue>
#include <vector>

#include "actors/logic/scheduling/assignment.hpp"

namespace {

using namespace troupe;
using detail::kernel_info;
using detail::task_record;
using logic::alternatives;
using logic::run_time;
using logic::trials;

constexpr float ms = 1e6f;
constexpr bool on_cores = true, apart = false;

class careful_trials : public testing::Test {
 protected:
  careful_trials() {
    rules.be_careful([this](std::size_t, const kernel_info&) {
      ++asked;
      return ready;
    });
  }
  bool allows(bool shares_cores, const alternatives& others) {
    const auto stake = rules.stake(1, kernel, device, shares_cores, 0, others);
    if (stake) device.stake(*stake);
    return stake.has_value();
  }
  // Four cores that take 1 ms for a task.
  static alternatives known(std::size_t waiting, double spent_ns = 0) {
    return {.cores = true, .run_ns = ms, .tasks_per_ns = 4 / ms, .waiting = waiting, .spent_ns = spent_ns};
  }

  kernel_info kernel{.name = "k"};
  run_time device;
  trials rules;
  bool ready = true;
  int asked = 0;
};

TEST(trials, are_made_at_once_unless_somebody_is_careful) {
  const kernel_info kernel{.name = "k"};
  run_time device;
  EXPECT_TRUE(trials().stake(1, kernel, device, on_cores, 0, {.cores = true}));
}

TEST_F(careful_trials, are_made_at_once_where_no_core_may_run_the_task) {
  ready = false;
  EXPECT_TRUE(allows(on_cores, {.cores = false}));
  EXPECT_EQ(asked, 0);
}

TEST_F(careful_trials, wait_until_the_device_is_ready) {
  ready = false;
  EXPECT_FALSE(allows(apart, known(1'000'000)));
  EXPECT_EQ(asked, 1);
  ready = true;
  EXPECT_TRUE(allows(apart, known(1'000'000)));
}

TEST_F(careful_trials, get_what_the_cores_leave_while_nobody_is_known) {
  EXPECT_FALSE(allows(apart, {.cores = true, .waiting = 0}));
  EXPECT_TRUE(allows(apart, {.cores = true, .waiting = 1}));
  EXPECT_FALSE(allows(on_cores, {.cores = true, .waiting = 1'000}));
}

// 32 ms at the worst, in which four cores do 128 tasks.
TEST_F(careful_trials, hide_behind_what_the_others_have_to_do) {
  EXPECT_FALSE(allows(apart, known(127)));
  EXPECT_TRUE(allows(apart, known(128)));
}

TEST_F(careful_trials, may_cost_a_twentieth_of_what_has_been_spent) {
  EXPECT_FALSE(allows(apart, known(0, 639 * ms)));
  EXPECT_TRUE(allows(apart, known(0, 640 * ms)));
  EXPECT_FALSE(allows(apart, known(0, 1279 * ms))) << "the first stake counts";
  EXPECT_TRUE(allows(apart, known(0, 1280 * ms)));
}

TEST_F(careful_trials, on_the_cores_themselves_are_to_be_hidden_and_to_cost_little) {
  EXPECT_FALSE(allows(on_cores, known(128, 639 * ms)));
  EXPECT_FALSE(allows(on_cores, known(127, 640 * ms)));
  EXPECT_TRUE(allows(on_cores, known(128, 640 * ms)));
}

TEST_F(careful_trials, know_from_the_first_one_what_the_second_one_takes) {
  device.learn(100 * ms);
  EXPECT_FALSE(allows(apart, known(799)));
  EXPECT_TRUE(allows(apart, known(800)));
}

TEST_F(careful_trials, count_what_it_takes_to_send_the_data) {
  EXPECT_FALSE(rules.stake(1, kernel, device, apart, 8 * ms, known(159)));
  EXPECT_TRUE(rules.stake(1, kernel, device, apart, 8 * ms, known(160)));
}

// ---- whole jobs, in time that only they know ------------------------------------------------------------------------

/// Four cores and a device, jobs of equal tasks without data. The device gets ready when somebody has asked.
class machine {
 public:
  machine(float device_ns, int takes_cores, float ready_after_ns) : choice_(ms, 0) {
    detail::executor_facts cores, device;
    cores.name = "cpu:0";
    cores.slots = slots_of_cores;
    device.id = 1;
    device.name = "sim:0";
    device.kind = device_kind::sim;
    device.space = 1;
    device.takes_cores = takes_cores;
    choice_.add(cores);
    choice_.add(device);
    choice_.know_link(detail::host_space, 1, {10'000, 1});
    choice_.know_link(1, detail::host_space, {10'000, 1});
    choice_.be_careful([this, ready_after_ns](std::size_t, const kernel_info&) {
      if (ready_at_ < 0) ready_at_ = now_ + static_cast<double>(ready_after_ns);
      return now_ >= ready_at_;
    });
    takes_[1] = device_ns;
  }
  /// Gives how long a job of so many tasks takes, in nanoseconds.
  double job(std::size_t n) {
    const double begin = now_;
    tasks_.clear();
    for (std::size_t i = 0; i < n; ++i) {
      task_record& t = tasks_.emplace_back();
      t.kernel = &kernel_;
      t.sequence = ++last_;
      choice_.assign(t);
      take();
    }
    for (std::size_t left = n; left != 0; --left) {
      const running first = under_way_.top();
      under_way_.pop();
      now_ = first.end;
      --busy_[first.at];
      first.task->measured_ns = takes_[first.at];
      choice_.finished(*first.task);
      choice_.refill();
      take();
    }
    return now_ - begin;
  }
  std::size_t by_device() const { return by_device_; }

 private:
  static constexpr int slots_of_cores = 4;
  struct running {
    double end;
    task_record* task;
    std::size_t at;
    bool operator<(const running& o) const { return end > o.end; }
  };
  void take() {
    for (const std::size_t i : {0u, 1u}) {
      for (task_record* t : choice_.outgoing(i)) queue_[i].push_back(t);
      choice_.outgoing(i).clear();
      choice_.sent(i);
      while (busy_[i] < (i == 0 ? slots_of_cores : 1) && !queue_[i].empty()) {
        under_way_.push({now_ + static_cast<double>(takes_[i]), queue_[i].front(), i});
        queue_[i].pop_front();
        ++busy_[i];
        by_device_ += i;
      }
    }
  }

  logic::assignment choice_;
  kernel_info kernel_{.name = "k",
                      .kinds = 1u << static_cast<int>(device_kind::cpu) | 1u << static_cast<int>(device_kind::sim)};
  std::deque<task_record> tasks_;
  std::deque<task_record*> queue_[2];
  std::priority_queue<running> under_way_;
  int busy_[2] = {0, 0};
  float takes_[2] = {ms, ms};
  double now_ = 0, ready_at_ = -1;
  std::size_t by_device_ = 0;
  std::uint64_t last_ = 0;
};

constexpr std::size_t tiles = 512;
constexpr double cores_alone_ns = tiles / 4 * double{ms};

// A twentieth of the fastest alone, from the first job on, with nothing known before.
TEST(careful_trials_of_jobs, cost_no_job_more_than_a_twentieth_however_slow_the_device_is) {
  for (const bool shares_cores : {true, false})
    for (const float device_ns : {0.5f * ms, 1 * ms, 5 * ms, 30 * ms})
      for (const float ready_ns : {0.0f, 20 * ms, 300 * ms}) {
        machine m(device_ns, shares_cores ? 1 : 0, ready_ns);
        for (int job = 0; job < 12; ++job)
          EXPECT_LE(m.job(tiles), 1.05 * cores_alone_ns)
              << "job " << job << ", " << device_ns / ms << " ms on the device, ready after " << ready_ns / ms << " ms";
      }
}

TEST(careful_trials_of_jobs, let_a_fast_device_work_in_the_first_job_once_it_is_ready) {
  machine m(0.02f * ms, 0, 20 * ms);
  EXPECT_LT(m.job(tiles), 0.5 * cores_alone_ns);
  EXPECT_GT(m.by_device(), tiles / 2);
  EXPECT_LT(m.job(tiles), 1.05 * tiles * 0.02 * double{ms}) << "then it is known";
}

TEST(careful_trials_of_jobs, find_out_about_devices_on_the_cores_too) {
  machine m(0.1f * ms, 1, 300 * ms);
  for (int job = 0; job < 12; ++job) m.job(tiles);
  EXPECT_GT(m.by_device(), tiles);
}

// Once they are known: 2 tasks of a job of 512 show that.
TEST(careful_trials_of_jobs, leave_to_the_cores_what_costs_them_as_much_on_the_device) {
  machine as_fast(1 * ms, 1, 0), by_all_cores(0.3f * ms, 4, 0), faster(0.3f * ms, 1, 0);
  for (int job = 0; job < 12; ++job)
    for (machine* m : {&as_fast, &by_all_cores, &faster}) m->job(tiles);
  EXPECT_EQ(as_fast.by_device(), 2u);
  EXPECT_EQ(by_all_cores.by_device(), 2u);
  EXPECT_GT(faster.by_device(), tiles);
}

// The program spawns one task at a time and waits for it.
TEST(careful_trials_of_jobs, find_out_though_there_is_never_more_than_one_task) {
  machine m(0.02f * ms, 0, 20 * ms);
  for (int i = 0; i < 3'000; ++i) m.job(1);
  EXPECT_GT(m.by_device(), 500u);
}

}  // namespace
