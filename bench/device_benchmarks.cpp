// Rows about accelerators and the measurements behind them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Each turn opens its device and closes it: contenders never hold one side by side, and the software GPU's speed can be
// set between turns.
#include "device_benchmarks.hpp"

#include "device_work.hpp"

#include <troupe/devices.hpp>

#include <algorithm>
#include <string_view>

namespace bench {

namespace {

// --- the table ------------------------------------------------------------------------------------------------------

std::vector<row> table(const std::string& device) {
  constexpr auto lower = better::lower;
  const auto on = [&device](const char* name) { return std::string(name) + "/" + device; };
  return {
      {on("gpu_launch/batch"), "ns/launch", lower, {}, {}, {{"raw", 1000}}},
      {on("gpu_launch/lone"), "ns p50", lower, {}, {}, {{"raw", 5000}}},

      {on("gpu_chain"), "ns/kernel", lower, {}, {{"raw", 1 / 1.15}}},

      {on("gpu_pipeline"), "x slowest stage", lower, 1.1},
      {on("gpu_pipeline/slowest"), "ms", lower},

      {on("gpu_resident"), "bytes/call", lower, 0},

      {on("convolve/free"), "ms/image", lower},
      {on("convolve/cpu"), "ms/image", lower},
      {on("convolve/device"), "ms/image", lower},
      {on("convolve/free_to_best"), "x best single", lower, 1.05},
      {on("convolve/on_device"), "% of tiles", lower},
  };
}

// --- measurements ---------------------------------------------------------------------------------------------------

/// A contender with one accelerator, as long as this lives.
class session {
 public:
  session(contender& who, const std::string& device, const settings& how)
      : who_(who), open_(who.start_on(device, how.threads)) {}
  session(const session&) = delete;
  session& operator=(const session&) = delete;
  ~session() {
    if (open_) who_.stop();
  }
  explicit operator bool() const { return open_; }

 private:
  contender& who_;
  bool open_;
};

/// `measure(who, device, how)` gives `count` figures for each device.
template <class F>
auto on_each_device(std::size_t count, F measure) {
  return [count, measure](contender& who, const settings& how) {
    figures all;
    for (const auto& device : how.devices) {
      auto found = measure(who, device, how);
      found.resize(count);
      all.insert(all.end(), found.begin(), found.end());
    }
    return all;
  };
}

std::optional<double> per(const std::optional<cost>& spent, std::size_t n) {
  return spent ? std::optional(spent->nanoseconds / static_cast<double>(n)) : std::nullopt;
}

figures measure_launch(contender& who, const std::string& device, const settings& how) {
  const session with(who, device, how);
  if (!with) return {};
  const std::size_t n = how.quick ? 500 : 2000;
  const auto batch = who.device_launches(n);
  return {per(batch, n), who.device_round_trip(how.quick ? 200 : 1000)};
}

figures measure_chain(contender& who, const std::string& device, const settings& how) {
  const session with(who, device, how);
  if (!with) return {};
  const std::size_t n = how.quick ? 200 : 1000;
  return {per(who.device_chain(n), n)};
}

figures measure_pipeline(contender& who, const std::string& device, const settings& how) {
  std::optional<sim_speed> speed;
  if (device.starts_with("sim:")) speed.emplace(flow_link_gb_per_s, flow_launch_us);
  const session with(who, device, how);
  if (!with) return {};
  flow_problem problem(how.quick ? 16 : 96);
  const auto stages = time_stages(device, problem);
  if (!stages) return {};
  const auto spent = who.device_flow(problem);
  if (!spent) return {};
  const double slowest = std::max({stages->copy_in, stages->kernels, stages->copy_out});
  return {spent->nanoseconds / slowest, slowest / 1e6};
}

figures measure_resident(contender& who, const std::string& device, const settings& how) {
  const session with(who, device, how);
  if (!with) return {};
  return {who.device_traffic(how.quick ? 20 : 100)};
}

/// Free placement first: it knows no more than what an untimed image before it showed.
figures measure_convolve(contender& who, const std::string& device, const settings& how) {
  static filter_problem problem;
  const session with(who, device, how);
  if (!with) return {};
  const int images = how.quick ? 3 : 20;
  const auto ms = [](const std::optional<filter_cost>& c) { return c ? std::optional(c->ms_per_image) : std::nullopt; };
  const auto anywhere = who.filter(problem, place::anywhere, images);
  const auto cores = who.filter(problem, place::cores, images);
  const auto alone = who.filter(problem, place::device, images);
  figures found{ms(anywhere), ms(cores), ms(alone), {}, {}};
  if (!anywhere || !cores || !alone) return found;
  found[3] = anywhere->ms_per_image / std::min(cores->ms_per_image, alone->ms_per_image);
  found[4] = anywhere->percent_on_device;
  return found;
}

std::vector<group> all_device_groups() {
  const auto where = stage::unstarted;
  return {
      {"gpu_launch", "tiny kernels on resident arrays", {}, {}, where, on_each_device(2, measure_launch), {}},
      {"gpu_chain", "small kernels that all update one array", {}, {}, where, on_each_device(1, measure_chain), {}},
      {"gpu_pipeline",
       "copy in, kernel, copy out, tile by tile",
       {},
       {},
       where,
       on_each_device(2, measure_pipeline),
       {}},
      {"gpu_resident",
       "bytes copied by calls on resident data",
       {},
       {},
       where,
       on_each_device(1, measure_resident),
       {}},
      {"convolve", "a 9 x 9 filter on 512 x 512 floats", {}, {}, where, on_each_device(5, measure_convolve), {}},
  };
}

}  // namespace

bool concerns_devices(const std::vector<std::string>& names) {
  return names.empty() || std::any_of(names.begin(), names.end(), [](const std::string& name) {
           const auto groups = all_device_groups();
           return std::any_of(groups.begin(), groups.end(), [&](const group& each) {
             return name == each.name || name.starts_with(each.name + "/");
           });
         });
}

std::vector<std::string> first_devices() {
  std::vector<std::string> names;
  for (const auto& kind : troupe::list_devices())
    if (!kind.devices.empty()) names.push_back(kind.devices.front().name);
  return names;
}

std::vector<group> device_groups(const settings& how) {
  auto groups = all_device_groups();
  for (const auto& device : how.devices)
    for (auto& each : table(device)) {
      const auto name = each.name.substr(0, each.name.find('/'));
      for (auto& group : groups)
        if (group.name == name) group.rows.push_back(each);
    }
  return groups;
}

}  // namespace bench
