// What this file is for: which devices a runtime takes: named in its options, by groups, or by the environment.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include <troupe/troupe.hpp>

#include "gates.hpp"

namespace {

using namespace troupe;
using test::error_of;
using names = std::vector<std::string>;

/// TROUPE_DEVICES has this value while it lives.
class environment {
 public:
  explicit environment(const char* value) {
    if (const char* old = std::getenv("TROUPE_DEVICES")) before_ = old;
    set(value);
  }
  ~environment() { set(before_ ? before_->c_str() : nullptr); }
  environment(const environment&) = delete;
  environment& operator=(const environment&) = delete;

 private:
  static void set(const char* value) { value ? ::setenv("TROUPE_DEVICES", value, 1) : ::unsetenv("TROUPE_DEVICES"); }
  std::optional<std::string> before_;
};

names devices_of(const std::vector<device_use>& wanted, const char* variable) {
  options o;
  o.threads = 1;
  o.devices = wanted;
  o.cost_cache = "none";
  std::optional<runtime> rt;
  {
    const environment now(variable);
    rt.emplace(o);
  }
  names all;
  for (const auto& e : rt->executors())
    if (e.kind != device_kind::cpu) all.push_back(e.name);
  return all;
}

names listed(std::initializer_list<const char*> kinds) {
  names all;
  for (const char* kind : kinds)
    for (const auto& l : list_devices())
      if (l.kind_name == kind)
        for (const auto& d : l.devices) all.push_back(d.name);
  return all;
}

TEST(device_names, come_from_the_environment_where_the_options_have_none) {
  EXPECT_EQ(devices_of({}, nullptr), names{});
  EXPECT_EQ(devices_of({}, ""), names{});
  EXPECT_EQ(devices_of({}, "sim"), (names{"sim:0", "sim:1"}));
  EXPECT_EQ(devices_of({}, "sim:1,sim:0,sim:1"), (names{"sim:1", "sim:0", "sim:1#1"}));
  EXPECT_EQ(devices_of({}, "none"), names{});
}

TEST(device_names, of_the_options_come_before_the_environment) {
  EXPECT_EQ(devices_of({{"sim:1"}}, "sim:0"), names{"sim:1"});
  EXPECT_EQ(devices_of({{"sim:1"}}, "toaster"), names{"sim:1"});
  EXPECT_EQ(devices_of({{"none"}}, "sim"), names{});
}

TEST(device_names, stand_for_groups_of_kinds) {
  const names gpus = listed({"cuda", "hip"}), all = listed({"cuda", "hip", "opencl"});
  EXPECT_EQ(devices_of({{"gpu"}}, nullptr), gpus);
  EXPECT_EQ(devices_of({}, "gpu"), gpus);
  EXPECT_EQ(devices_of({{"all"}}, nullptr), all);
  EXPECT_EQ(devices_of({}, "all"), all);
  names with_sim = gpus;
  with_sim.push_back("sim:0");
  EXPECT_EQ(devices_of({{"gpu"}, {"sim:0"}}, nullptr), with_sim);
}

TEST(device_names, that_mean_nothing_are_refused_with_the_place_they_stand_in) {
  const auto refused = [](const std::vector<device_use>& wanted, const char* variable, errc code, const char* place,
                          const char* text) {
    const auto e = error_of([&] { devices_of(wanted, variable); });
    ASSERT_TRUE(e) << text;
    EXPECT_EQ(e->code, code) << e->text;
    EXPECT_TRUE(e->says(place)) << e->text;
    EXPECT_TRUE(e->says(text)) << e->text;
  };
  const auto variable = [&](const char* value, errc code, const char* text) {
    refused({}, value, code, "TROUPE_DEVICES", text);
  };
  variable("toaster", errc::bad_argument, "'toaster' is no kind of device");
  variable("gpu:0", errc::bad_argument, "'gpu' is no kind of device");
  variable("sim,,sim", errc::bad_argument, "a device without a name");
  variable("sim,", errc::bad_argument, "a device without a name");
  variable(",", errc::bad_argument, "a device without a name");
  variable("sim:x", errc::bad_argument, "'sim:x' is no device");
  variable("sim:-1", errc::bad_argument, "'sim:-1' is no device");
  variable("sim:99", errc::no_executor, "there is no sim:99");
  variable("sim,none", errc::bad_argument, "\"none\" is named beside others");
  const auto options = [&](std::vector<device_use> wanted, errc code, const char* text) {
    refused(wanted, "sim", code, "options::devices", text);
  };
  options({{""}}, errc::bad_argument, "a device without a name");
  options({{"toaster"}}, errc::bad_argument, "'toaster' is no kind of device");
  options({{"sim"}, {"none"}}, errc::bad_argument, "\"none\" is named beside others");
  options({{"sim:99"}}, errc::no_executor, "there is no sim:99");
  EXPECT_EQ(devices_of({{"sim:0"}}, nullptr), names{"sim:0"});  // and the next runtime is as it should be
}

}  // namespace
