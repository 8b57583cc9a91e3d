// What this file is for: jobs keep their order, there is room for as many as there should be, lanes have their turns.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/gpu/job_list.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "tests/support/plain_device.hpp"

namespace {

using namespace troupe::detail;

constexpr int lanes = 2;  // that compute
constexpr std::size_t few = 2 * lanes + gpu_copy_lanes;

struct gpu_job_list_test : testing::Test {
  gpu_job_list_test() { rt->host = std::make_unique<test::plain_device>(); }
  ~gpu_job_list_test() override {
    while (!jobs->empty()) jobs->give(jobs->front());
    jobs.reset();
    rt->release();
  }
  gpu_job& begin(float predicted_ns) {
    auto& t = tasks.emplace_back(std::make_unique<task_record>());
    t->kind = task_kind::call;
    t->predicted_ns = predicted_ns;
    gpu_job& j = jobs->take();
    j.task = t.get();
    jobs->count(j);
    return j;
  }
  void begin_some(std::size_t n, float predicted_ns) {
    for (std::size_t i = 0; i < n; ++i) begin(predicted_ns);
  }
  runtime_state* rt = new runtime_state;
  std::atomic<bool> stopping{false};
  std::vector<std::unique_ptr<task_record>> tasks;
  std::optional<gpu_job_list> jobs{std::in_place, *rt, "device", stopping, lanes};
};

TEST_F(gpu_job_list_test, keeps_the_order_in_which_jobs_began_whichever_ends_first) {
  gpu_job& a = begin(1);
  gpu_job& b = begin(1);
  gpu_job& c = begin(1);
  EXPECT_EQ(&jobs->front(), &a);
  std::vector<gpu_job*> behind;
  for (gpu_job& j : jobs->after(a)) behind.push_back(&j);
  EXPECT_EQ(behind, (std::vector<gpu_job*>{&b, &c}));
  jobs->give(b);
  EXPECT_EQ(jobs->size(), 2u);
  gpu_job& again = begin(1);
  EXPECT_EQ(&again, &b) << "a job that has ended is used again";
  EXPECT_TRUE(jobs->after(again).empty());
  EXPECT_EQ(&*jobs->begin(), &a);
}

TEST_F(gpu_job_list_test, has_room_for_two_jobs_a_lane_however_long_they_are) {
  begin_some(few - 1, 1e9f);
  EXPECT_TRUE(jobs->has_room());
  begin(1e9f);
  EXPECT_FALSE(jobs->has_room());
}

TEST_F(gpu_job_list_test, works_off_half_of_short_jobs_before_there_is_room_again) {
  begin_some(255, 1.0f);
  EXPECT_TRUE(jobs->has_room());
  begin(1.0f);
  EXPECT_FALSE(jobs->has_room());
  while (jobs->size() > 128) {
    jobs->give(jobs->front());
    EXPECT_EQ(jobs->has_room(), jobs->size() < 128);
  }
  jobs->give(jobs->front());
  EXPECT_TRUE(jobs->has_room());
  begin_some(128, 1.0f);
  EXPECT_TRUE(jobs->has_room()) << "there was room, so it fills up again";
}

TEST_F(gpu_job_list_test, counts_predicted_work_and_not_jobs_where_they_are_long) {
  begin_some(few, 1000.0f);
  EXPECT_TRUE(jobs->has_room());
  gpu_job& long_one = begin(400'000.0f);
  EXPECT_FALSE(jobs->has_room());
  jobs->give(long_one);
  EXPECT_TRUE(jobs->has_room()) << "its work does not count any more";
}

TEST_F(gpu_job_list_test, forgets_work_with_the_last_job_so_that_roundings_do_not_add_up) {
  gpu_job& j = begin(1e9f);
  tasks.back()->predicted_ns = 1.0f;  // another number than was added
  jobs->give(j);
  begin_some(few, 1000.0f);
  EXPECT_TRUE(jobs->has_room());
}

TEST_F(gpu_job_list_test, has_room_for_a_job_a_lane_while_tiles_are_evicted) {
  jobs->begin_evicting();
  begin_some(lanes + gpu_copy_lanes - 1, 1.0f);
  EXPECT_TRUE(jobs->has_room());
  begin(1.0f);
  EXPECT_FALSE(jobs->has_room());
  jobs->end_evicting();
  EXPECT_TRUE(jobs->has_room());
}

TEST_F(gpu_job_list_test, shows_the_tasks_that_were_under_way_until_it_is_told_to_hide_them) {
  bell door;
  begin(1);
  gpu_job& copy = begin(1);
  copy.task->kind = task_kind::transfer;
  jobs->take().task = nullptr;  // makes room, for no task
  jobs->show(door.hold());
  EXPECT_EQ(jobs->shown(door.hold()), std::vector<task_record*>{tasks[0].get()});
  begin(1);
  EXPECT_EQ(jobs->shown(door.hold()).size(), 1u) << "the list is of the time when it was made";
  jobs->show(door.hold());
  EXPECT_EQ(jobs->shown(door.hold()), (std::vector<task_record*>{tasks[0].get(), tasks[2].get()}));
  jobs->hide(door.hold());
  EXPECT_TRUE(jobs->shown(door.hold()).empty());
}

TEST_F(gpu_job_list_test, gives_lanes_in_turn_while_one_of_them_may_rest) {
  const int first = jobs->next_lane(false), second = jobs->next_lane(false);
  EXPECT_NE(first, second);
  EXPECT_GE(std::min(first, second), gpu_copy_lanes);
  EXPECT_EQ(jobs->next_lane(false), first);
}

TEST_F(gpu_job_list_test, gives_rows_of_short_jobs_to_one_lane_while_all_have_work) {
  begin_some(2 * lanes + 1, 1.0f);
  std::vector<int> lane;
  for (int i = 0; i < 17; ++i) lane.push_back(jobs->next_lane(false));
  EXPECT_EQ(std::set<int>(lane.begin(), lane.begin() + 7).size(), 1u);
  EXPECT_EQ(std::set<int>(lane.begin() + 7, lane.begin() + 15).size(), 1u);
  EXPECT_NE(lane[6], lane[7]);
  EXPECT_NE(lane[14], lane[15]);
  EXPECT_NE(jobs->next_lane(true), lane[16]) << "a long one begins the next lane's turn";
}

}  // namespace
