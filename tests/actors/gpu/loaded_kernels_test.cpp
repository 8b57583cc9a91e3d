// What this file is for: a kernel is loaded once for each life of its device, and what is said of it is said once.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/gpu/loaded_kernels.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace {

using namespace troupe::detail;

struct loaded_kernels_test : testing::Test {
  auto loads() {
    return [this] { return static_cast<troupe::devices::kernel_id>(++loaded); };
  }
  loaded_kernels table;
  const kernel_info a{.name = "a", .key = 1}, b{.name = "b", .key = 2};
  int loaded = 0;
};

TEST_F(loaded_kernels_test, loads_each_kernel_once) {
  const auto first = table.find(a, loads());
  EXPECT_EQ(table.find(a, loads()), first);
  EXPECT_NE(table.find(b, loads()), first);
  EXPECT_EQ(loaded, 2);
}

TEST_F(loaded_kernels_test, does_not_know_a_kernel_that_could_not_be_loaded) {
  const auto fails = []() -> troupe::devices::kernel_id { throw std::runtime_error("no such text"); };
  EXPECT_THROW(table.find(a, fails), std::runtime_error);
  EXPECT_FALSE(table.contains(a));
  table.find(a, loads());
  EXPECT_TRUE(table.contains(a));
}

TEST_F(loaded_kernels_test, loads_again_after_the_device_was_opened_anew) {
  table.find(a, loads());
  table.forget_loaded();
  EXPECT_FALSE(table.contains(a));
  table.find(a, loads());
  EXPECT_EQ(loaded, 2);
}

TEST_F(loaded_kernels_test, keeps_a_routines_handle_until_all_are_dropped) {
  const int key = 0, other = 0;
  auto handle = std::make_shared<int>(7);
  const std::weak_ptr<int> alive = handle;
  table.handle(&key) = std::move(handle);
  EXPECT_EQ(table.handle(&other), nullptr);
  EXPECT_NE(table.handle(&key), nullptr);
  table.drop_handles();
  EXPECT_TRUE(alive.expired());
  EXPECT_EQ(table.handle(&key), nullptr);
}

TEST_F(loaded_kernels_test, tells_once_that_a_kernel_cannot_run_here) {
  EXPECT_TRUE(table.note_unfit(a));
  EXPECT_FALSE(table.note_unfit(a));
  EXPECT_TRUE(table.note_unfit(b));
  table.forget_loaded();
  EXPECT_FALSE(table.note_unfit(a)) << "another life of the device is no reason to say it again";
}

}  // namespace
