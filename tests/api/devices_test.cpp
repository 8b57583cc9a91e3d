// What this file is for: what a program is told of its machine's cores, devices and links.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

#include <troupe/troupe.hpp>

#include "gates.hpp"
#include "tests/support/scratch_folder.hpp"

namespace {

using namespace troupe;

device_info first_sim(const listing_options& how) {
  for (const device_listing& l : list_devices(how))
    if (l.kind == device_kind::sim) return l.devices.at(0);
  return {};
}

// Asks again where the machine was too busy for an answer.
device_info measured_sim(const std::string& path) {
  const auto give_up = std::chrono::steady_clock::now() + test::patience;
  for (;;) {
    const device_info d = first_sim({.measure = true, .cost_cache = path});
    const bool complete = d.link.in_gb_per_s > 0 && d.link.out_gb_per_s > 0;
    if (complete || std::chrono::steady_clock::now() > give_up) return d;
  }
}

TEST(devices, the_cores_are_described_like_a_device) {
  const device_info d = describe_host();
  EXPECT_EQ(d.name, "cpu:0");
  EXPECT_EQ(d.kind, device_kind::cpu);
  EXPECT_FALSE(d.model.empty());
  EXPECT_GT(d.memory_bytes, 0u);
  runtime rt;
  EXPECT_EQ(rt.executors().at(0).slots, d.lanes);
}

TEST(devices, links_are_measured_when_asked_for_and_known_from_then_on) {
  const test::scratch_folder costs;
  const std::string path = costs.path();
  EXPECT_EQ(first_sim({.cost_cache = path}).link.in_gb_per_s, 0);
  // A measurement while the machine is too busy is not kept, so the device is measured until one is.
  device_info measured, known;
  const auto give_up = std::chrono::steady_clock::now() + test::patience;
  do {
    measured = measured_sim(path);
    known = first_sim({.cost_cache = path});
  } while (known.link.in_gb_per_s == 0 && std::chrono::steady_clock::now() < give_up);
  EXPECT_EQ(measured.name, "sim:0");
  EXPECT_EQ(measured.lanes, device_use{}.lanes);
  EXPECT_GT(measured.link.in_gb_per_s, 0);
  EXPECT_GT(measured.link.out_gb_per_s, 0);
  EXPECT_GT(measured.link.in_latency_us, 0);
  EXPECT_GT(measured.link.out_latency_us, 0);
  EXPECT_EQ(known.link.in_gb_per_s, measured.link.in_gb_per_s);
  EXPECT_EQ(first_sim({.cost_cache = "none"}).link.in_gb_per_s, 0);
  EXPECT_GT(measured_sim("none").link.in_gb_per_s, 0);
}

}  // namespace
