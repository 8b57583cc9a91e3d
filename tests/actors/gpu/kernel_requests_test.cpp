// What this file is for: kernels that are asked for are loaded once each, in order, and again on a new device.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/gpu/kernel_requests.hpp"

#include <gtest/gtest.h>

namespace {

using troupe::detail::calm_watch;
using troupe::detail::kernel_info;
using troupe::detail::kernel_requests;
using answer = kernel_requests::answer;

TEST(kernel_requests, are_answered_in_order_and_once) {
  const kernel_info a{.name = "a"}, b{.name = "b"};
  kernel_requests r;
  EXPECT_FALSE(r.any());
  EXPECT_EQ(r.ask(a, 10), answer::added);
  EXPECT_EQ(r.ask(b, 20), answer::added);
  EXPECT_EQ(r.ask(a, 30), answer::asked);
  EXPECT_TRUE(r.any());
  EXPECT_EQ(r.first().kernel, &a);
  EXPECT_EQ(r.first().since, 10u);
  r.first_is_ready();
  EXPECT_EQ(r.ask(a, 40), answer::ready);
  EXPECT_EQ(r.first().kernel, &b);
  r.first_is_ready();
  EXPECT_FALSE(r.any());
}

TEST(kernel_requests, are_made_again_for_a_new_device) {
  const kernel_info a{.name = "a"}, b{.name = "b"};
  kernel_requests r;
  r.ask(a, 1);
  r.first_is_ready();
  r.ask(b, 2);
  r.forget_ready();
  EXPECT_EQ(r.ask(a, 3), answer::added);
  EXPECT_EQ(r.ask(b, 3), answer::asked) << "it is still to be loaded";
}

TEST(calm_watch, tells_for_how_long_the_cores_have_rested_at_each_look) {
  calm_watch w;
  EXPECT_EQ(w.look(true, 100), 0u);
  EXPECT_EQ(w.look(true, 150), 50u);
  EXPECT_EQ(w.look(false, 200), 0u);
  EXPECT_EQ(w.look(true, 300), 0u);
  EXPECT_EQ(w.look(true, 310), 10u);
}

}  // namespace
