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
  const auto refused = [](const std::vector<device_use>& wanted, const char* variable, errc code, const char* named,
                          const char* text) {
    const auto e = error_of([&] { devices_of(wanted, variable); });
    ASSERT_TRUE(e) << text;
    EXPECT_EQ(e->code, code) << e->text;
    EXPECT_TRUE(e->says(named)) << e->text;
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

// The kinds of which there is none here.
names absent() {
  names all;
  for (const auto& l : list_devices())
    if (l.devices.empty()) all.push_back(l.kind_name);
  return all;
}

TEST(device_names, of_kinds_that_are_not_there_are_remarked_with_the_place_and_the_reason) {
  for (const std::string& kind : absent()) {
    std::optional<runtime> rt;
    {
      const environment now((kind + ",sim:0," + kind).c_str());
      rt.emplace(options{.threads = 1, .cost_cache = "none"});
    }
    const auto remarks = rt->report().remarks;
    ASSERT_EQ(remarks.size(), 1u) << kind;
    for (const std::string& part : {std::string("TROUPE_DEVICES"), "'" + kind + "'", std::string("no ")})
      EXPECT_NE(remarks.front().find(part), std::string::npos) << remarks.front();
    runtime by_options(options{.threads = 1, .devices = {{kind}}, .cost_cache = "none"});
    ASSERT_EQ(by_options.report().remarks.size(), 1u);
    EXPECT_TRUE(by_options.report().remarks.front().starts_with("options::devices"))
        << by_options.report().remarks.front();
  }
  const environment none(nullptr);
  EXPECT_TRUE(runtime(options{.threads = 1, .devices = {{"sim"}}, .cost_cache = "none"}).report().remarks.empty());
}

constexpr auto on_both = kernel<inout<int, 1>>("on both")
                             .on(cpu, [](view<int, 1>) {})
                             .on(gpu, source{"GPU_KERNEL void k(GPU_INOUT(int, a)) {}", "k"});
constexpr auto on_devices =
    kernel<inout<int, 1>>("on devices").on(gpu, source{"GPU_KERNEL void k(GPU_INOUT(int, a)) {}", "k"});

TEST(device_names, are_what_a_scope_without_devices_is_told_of) {
  const environment none(nullptr);
  runtime rt(options{.threads = 1, .cost_cache = "none"});
  auto a = rt.filled<int>({10}, tiles(10), 1);
  for (const scope& where : {scope::gpu(), scope::kind(device_kind::sim), scope::executor("sim:0")}) {
    const auto e = error_of([&] { rt.spawn({.where = where}, on_both, update(a)); });
    ASSERT_TRUE(e);
    EXPECT_EQ(e->code, errc::no_executor) << e->text;
    EXPECT_TRUE(e->says("options::devices")) << e->text;
    EXPECT_TRUE(e->says("TROUPE_DEVICES")) << e->text;
  }
  const auto e = error_of([&] { rt.spawn(on_devices, update(a)); });
  ASSERT_TRUE(e);
  EXPECT_TRUE(e->says("options::devices")) << e->text;
  for (const std::string& kind : absent()) {
    runtime with(options{.threads = 1, .devices = {{kind}}, .cost_cache = "none"});
    auto b = with.filled<int>({10}, tiles(10), 1);
    const auto why = error_of([&] { with.spawn({.where = scope::gpu()}, on_both, update(b)); });
    ASSERT_TRUE(why);
    EXPECT_TRUE(why->says(("of '" + kind + "' there is nothing").c_str())) << why->text;
  }
}

}  // namespace
