// What this file is for: the disk's thread: what it moves, what it tells when that fails, how it ends.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/memory/spill_disk.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "actors/memory/host_tiles.hpp"
#include "actors/memory/internal_tasks.hpp"
#include "actors/protocol/phase.hpp"
#include "paper_file.hpp"
#include "tests/actors/placement/stage.hpp"

namespace {

using namespace test;
using troupe::errc;

constexpr std::chrono::seconds patience{30};

class disk : public testing::Test {
 protected:
  disk() : stage_(1) {
    disk_options o;
    o.file = std::make_unique<paper_file>(faults);
    o.report_done = [this](task_record& t) {
      const std::lock_guard hold(lock_);
      done_.push_back(&t);
      changed_.notify_all();
    };
    thread = make_disk(std::move(o), stage_.board, *stage_.rt);
    thread->start();
    array = stage_.array();
    array->spec.rank = 1;
    array->spec.element = 1000;
    array->spec.size = array->spec.tile = {1, 1, 1, 1};
    put(7);
  }
  ~disk() override {
    thread->request_stop();
    EXPECT_TRUE(thread->wait_ended(std::chrono::steady_clock::now() + patience));
    for (task_record* t : made_) release(t);
  }
  void put(int value) {
    std::byte* p = host_tile(*stage_.rt, *array, 0, true);
    for (int i = 0; i < 1000; ++i) p[i] = std::byte(value);
  }
  int get() { return std::to_integer<int>(array->bytes[0].data.load()[999]); }
  task_record* move(task_record* t) {
    made_.push_back(t);
    thread->move(*t, 4096);
    std::unique_lock hold(lock_);
    EXPECT_TRUE(changed_.wait_for(hold, patience, [&] { return !done_.empty() && done_.back() == t; }));
    return t;
  }
  task_record* spill() { return move(make_spill(*stage_.rt, *array, 0)); }
  task_record* load() { return move(make_load(*stage_.rt, *array, 0)); }

  stage stage_;
  paper_faults faults;
  std::shared_ptr<disk_thread> thread;
  array_core* array;

 private:
  std::mutex lock_;
  std::condition_variable changed_;
  std::vector<task_record*> done_, made_;
};

TEST_F(disk, moves_a_tile_out_and_back) {
  EXPECT_FALSE(spill()->error);
  EXPECT_EQ(array->bytes[0].data.load(), nullptr);
  EXPECT_EQ(stage_.rt->array_bytes.load(), 0u);
  EXPECT_FALSE(load()->error);
  EXPECT_EQ(get(), 7);
  EXPECT_EQ(thread->bytes_out(), 1000u);
  EXPECT_EQ(thread->bytes_in(), 1000u);
}

TEST_F(disk, leaves_a_tile_where_it_is_when_the_file_is_full) {
  faults.full = true;
  EXPECT_TRUE(spill()->error);
  EXPECT_EQ(get(), 7);
  faults.full = false;
  EXPECT_FALSE(spill()->error);
  EXPECT_FALSE(load()->error);
  EXPECT_EQ(get(), 7);
}

TEST_F(disk, frees_what_it_could_not_read_and_reads_it_later) {
  spill();
  faults.unreadable = true;
  EXPECT_TRUE(load()->error);
  EXPECT_EQ(stage_.rt->array_bytes.load(), 0u);
  faults.unreadable = false;
  EXPECT_FALSE(load()->error);
  EXPECT_EQ(get(), 7);
}

TEST_F(disk, refuses_what_comes_after_its_end) {
  thread->request_stop();
  ASSERT_TRUE(thread->wait_ended(std::chrono::steady_clock::now() + patience));
  const task_record* t = spill();
  ASSERT_TRUE(t->error);
  EXPECT_EQ(get(), 7);
}

}  // namespace
