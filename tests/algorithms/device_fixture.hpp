// What this file is for: where the programs are run: on one accelerator alone, or on the cores and one together.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

#include <troupe/troupe.hpp>

namespace troupe_test {

/// The parameter: a kind of device, or "cores_and_sim". `where()` goes into the program that is tested. Without the
/// device the test is skipped with the reason.
class device_fixture : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    troupe::options o{.threads = 2};
    o.devices = {{device()}};
    o.cost_cache = "none";   // earlier runs may know that the device is the slower one
    o.eager_devices = true;  // however little there is to do
    try {
      rt_.emplace(o);
    } catch (const troupe::error& e) {
      GTEST_SKIP() << e.what();
    }
  }
  bool alone() const { return GetParam() != "cores_and_sim"; }
  std::string device() const { return (alone() ? GetParam() : "sim") + ":0"; }
  troupe::scope where() const { return alone() ? troupe::scope::executor(device()) : troupe::scope::any(); }
  troupe::runtime& rt() { return *rt_; }

  /// Runs a program. Beside cores again and again, until the device has had some of its tasks: the cores may have done
  /// the few tasks of a small program before the device's thread is awake.
  template <class Program>
  void run_until_shared(Program&& program) {
    program();
    for (int again = 0; !alone() && tasks_on_device() == 0 && again < 1000 && !HasFailure(); ++again) program();
  }
  /// All of the program's tasks where it runs on the device alone, else some of them.
  void expect_tasks_on_device(std::uint64_t all) {
    const auto report = rt().report();
    for (const auto& e : report.executors) {
      if (e.name != device()) continue;
      if (alone())
        EXPECT_EQ(e.tasks, all);
      else
        EXPECT_GT(e.tasks, 0u);
      return;
    }
    FAIL() << device() << " is not in the report";
  }

 private:
  std::uint64_t tasks_on_device() {
    for (const auto& e : rt().report().executors)
      if (e.name == device()) return e.tasks;
    return 0;
  }

  std::optional<troupe::runtime> rt_;
};

inline auto every_place() { return testing::Values("sim", "opencl", "cuda", "hip", "cores_and_sim"); }
inline std::string name_of_place(const testing::TestParamInfo<std::string>& info) { return info.param; }

}  // namespace troupe_test
