// What this file is for: a device that has failed gets a device, or a reason, and one of them only.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/gpu/repair.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <stdexcept>

namespace {

using namespace troupe::detail;

std::exception_ptr made(const char* text) { return std::make_exception_ptr(std::runtime_error(text)); }
auto in_time() { return std::chrono::steady_clock::now() + std::chrono::seconds(30); }

TEST(gpu_repair, is_under_way_until_its_outcome_is_taken) {
  gpu_repair r;
  EXPECT_FALSE(r.is_under_way());
  r.begin(made("broken"));
  EXPECT_TRUE(r.is_under_way());
  EXPECT_FALSE(r.take(false));
  EXPECT_TRUE(r.is_under_way());
  r.refuse(made("given up"));
  const auto o = r.take(false);
  ASSERT_TRUE(o);
  EXPECT_EQ(text_of(o->error), "given up");
  EXPECT_FALSE(r.is_under_way());
}

TEST(gpu_repair, ends_with_the_failure_itself_if_nobody_waits_for_the_verdict) {
  gpu_repair r;
  r.begin(made("broken"));
  const auto o = r.take(true);
  ASSERT_TRUE(o);
  EXPECT_EQ(text_of(o->error), "broken");
}

TEST(gpu_repair, opens_on_another_thread_and_rings) {
  gpu_repair r;
  r.begin(made("broken"));
  std::promise<void> rung;
  std::thread::id opened_by;
  r.open_async(
      "dev", nullptr,
      [&]() -> std::unique_ptr<troupe::devices::accelerator> {
        opened_by = std::this_thread::get_id();
        throw std::runtime_error("still broken");
      },
      [&] { rung.set_value(); });
  rung.get_future().wait();
  EXPECT_TRUE(r.wait_ended(in_time()));
  EXPECT_NE(opened_by, std::this_thread::get_id());
  const auto o = r.take(false);
  ASSERT_TRUE(o);
  EXPECT_EQ(o->device, nullptr);
  EXPECT_EQ(text_of(o->error), "still broken");
}

TEST(gpu_repair, keeps_a_complaint_until_it_is_taken) {
  gpu_repair r;
  EXPECT_FALSE(r.has_complaint());
  r.note_complaint(made("launch failed"));
  EXPECT_TRUE(r.has_complaint());
  EXPECT_EQ(text_of(r.take_complaint()), "launch failed");
  EXPECT_FALSE(r.has_complaint());
  EXPECT_EQ(r.take_complaint(), nullptr);
}

TEST(gpu_repair, gives_the_device_up_only_if_there_is_none_again) {
  gpu_repair opened;
  opened.begin(made("broken"));
  opened.open_async(
      "device", nullptr, [] { return std::unique_ptr<troupe::devices::accelerator>(); }, [] {});
  ASSERT_TRUE(opened.wait_ended(in_time()));
  ASSERT_TRUE(opened.take(false));
  EXPECT_FALSE(opened.is_given_up());

  gpu_repair refused;
  refused.begin(made("broken"));
  refused.refuse(made("too often"));
  EXPECT_FALSE(refused.is_given_up()) << "nobody has taken the outcome";
  ASSERT_TRUE(refused.take(false));
  EXPECT_TRUE(refused.is_given_up());
}

}  // namespace
