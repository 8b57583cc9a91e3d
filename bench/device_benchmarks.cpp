// Rows about accelerators and the measurements behind them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A turn opens its device and closes it: contenders never hold one side by side, and the software GPU's speed can be
// set between turns.
#include "device_benchmarks.hpp"

#include "device_work.hpp"
#include "gemm_work.hpp"

#include <troupe/devices.hpp>

#include <unistd.h>
#include <algorithm>
#include <string_view>

namespace bench {

namespace {

// --- the table ------------------------------------------------------------------------------------------------------

bool is_cuda(const std::string& device) { return device.starts_with("cuda:"); }

/// Returns problems for the device; one without a vendor's library gets what it can do in a moment.
std::vector<gemm_problem> gemm_problems(const std::string& device, const settings& how) {
  const std::size_t n = is_cuda(device) ? 4096 : how.quick ? 128 : 256;
  std::vector<gemm_problem> all;
  for (const int products : {1, 4})
    for (const std::size_t tiles : {8, 4, 2}) all.push_back({n, n / tiles, products});
  return all;
}
std::uint64_t quota_of(const std::string& device, const settings& how) {
  if (how.quota_bytes != 0) return how.quota_bytes;
  return (std::uint64_t{is_cuda(device) ? 8192u : 3u} << 20) / (how.quick ? 8 : 1);
}
std::size_t transfer_bytes(const std::string& device, const settings& how) {
  return std::size_t{is_cuda(device) ? 256u : how.quick ? 8u : 64u} << 20;
}

std::vector<row> table(const std::string& device, const settings& how) {
  constexpr auto lower = better::lower;
  constexpr auto higher = better::higher;
  const auto on = [&device](const std::string& name) { return name + "/" + device; };
  const std::string peer = is_cuda(device) ? "cuda" : "raw";
  std::vector<row> all{
      {on("gpu_launch/batch"), "ns/launch", lower, {}, {}, {{"raw", 1000}}},
      {on("gpu_launch/lone"), "ns p50", lower, {}, {}, {{"raw", 5000}}},

      {on("gpu_chain"), "ns/kernel", lower, {}, {{"raw", 1 / 1.15}}},

      {on("gpu_pipeline"), "x slowest stage", lower, 1.1},
      {on("gpu_pipeline/slowest"), "ms", lower},

      {on("gpu_resident"), "bytes/call", lower, 0},

      {on("gpu_stream"), "us/batch", lower},
      {on("gpu_stream/to_hand"), "x by hand", lower, 1 / 0.95},

      {on("convolve/free"), "ms/image", lower},
      {on("convolve/cpu"), "ms/image", lower},
      {on("convolve/device"), "ms/image", lower},
      {on("convolve/free_to_best"), "x best single", lower, 1.05},
      {on("convolve/on_device"), "% of tiles", lower},

      {on("gpu_transfer/in"), "GB/s", higher, {}, {{peer, 0.95}}},
      {on("gpu_transfer/out"), "GB/s", higher, {}, {{peer, 0.95}}},

      {on("gpu_out_of_core"), "GF/s", higher, {}, {}},
      {on("gpu_out_of_core/moved"), "MiB", lower},
      {on("gpu_out_of_core/block"), "rows", lower},
  };
  for (auto& each : all)
    if (each.name == on("gpu_out_of_core") && is_cuda(device)) each.ratios = {{peer, 1}};
  for (const gemm_problem& each : gemm_problems(device, how)) {
    row one{on("gpu_gemm/" + std::to_string(each.tile) + (each.products == 1 ? "" : "x4")), "GF/s", higher};
    if (is_cuda(device)) one.ratios = {{peer, 0.9}};  // elsewhere lanes and workers share the same cores
    all.push_back(one);
  }
  return all;
}

// --- measurements ---------------------------------------------------------------------------------------------------

/// A contender with one accelerator, as long as this lives.
class session {
 public:
  session(contender& who, const std::string& device, const settings& how, std::uint64_t memory_bytes = 0)
      : who_(who), open_(who.start_on(device, how.threads, memory_bytes)) {}
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
      figures found;
      try {
        found = measure(who, device, how);
      } catch (const missing& e) {
        note_absent(who.name() + " on " + device + ": " + e.what());
      }
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

figures measure_stream(contender& who, const std::string& device, const settings& how) {
  const session with(who, device, how);
  if (!with) return {};
  const std::size_t batches = how.quick ? 50 : 500;
  const auto spent = who.device_stream(batches);
  if (!spent) return {};
  return {spent->stream_ns / 1e3 / static_cast<double>(batches), spent->stream_ns / spent->by_hand_ns};
}

/// Free placement first: it knows no more than what an untimed image before it showed.
figures measure_convolve(contender& who, const std::string& device, const settings& how) {
  static filter_problem problem;
  const session with(who, device, how);
  if (!with) return {};
  const int images = how.quick ? 3 : 20;
  const auto ms = [](const std::optional<filter_cost>& c) { return c ? std::optional(c->ms_per_image) : std::nullopt; };
  const auto anywhere = who.filter(problem, filter_scope::anywhere, images);
  const auto cores = who.filter(problem, filter_scope::cores, images);
  const auto alone = who.filter(problem, filter_scope::device, images);
  figures found{ms(anywhere), ms(cores), ms(alone), {}, {}};
  if (!anywhere || !cores || !alone) return found;
  found[3] = anywhere->ms_per_image / std::min(cores->ms_per_image, alone->ms_per_image);
  found[4] = anywhere->percent_on_device;
  return found;
}

figures measure_gemm(contender& who, const std::string& device, const settings& how) {
  const session with(who, device, how);
  if (!with) return {};
  figures found;
  for (const gemm_problem& each : gemm_problems(device, how)) {
    const auto spent = who.device_gemm(each);
    found.push_back(spent ? std::optional(each.flops() / *spent) : std::nullopt);
  }
  return found;
}

figures measure_transfer(contender& who, const std::string& device, const settings& how) {
  std::optional<sim_speed> speed;
  if (device.starts_with("sim:")) speed.emplace(transfer_link_gb_per_s, 0, true);
  const session with(who, device, how);
  if (!with) return {};
  const std::size_t bytes = transfer_bytes(device, how);
  const auto spent = who.device_transfer(bytes);
  if (!spent) return {};
  return {static_cast<double>(bytes) / spent->in_ns, static_cast<double>(bytes) / spent->out_ns};
}

figures measure_out_of_core(contender& who, const std::string& device, const settings& how) {
  std::optional<sim_speed> speed;
  if (device.starts_with("sim:")) speed.emplace(0, 0, true);
  const out_of_core_problem problem(quota_of(device, how));
  const std::uint64_t needed = 3 * problem.n() * problem.n() * sizeof(float),
                      there = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                              static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  if (needed > there / 2)  // more is not pinned
    throw missing("gpu_out_of_core: its matrices take " + std::to_string(needed >> 20) + " MiB of host memory, of " +
                  std::to_string(there >> 20) + "; see --quota");
  const session with(who, device, how, problem.quota_bytes);
  if (!with) return {};
  const auto spent = who.out_of_core(problem);
  if (!spent) return {};
  const auto mib = [](double bytes) { return bytes / (1 << 20); };
  return {problem.flops() / spent->nanoseconds,
          spent->bytes_moved ? std::optional(mib(*spent->bytes_moved)) : std::nullopt, spent->block};
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
      {"gpu_stream",
       "batches of resident arrays through a kernel, as a stream",
       {},
       {},
       where,
       on_each_device(2, measure_stream),
       {}},
      {"convolve", "a 9 x 9 filter on 512 x 512 floats", {}, {}, where, on_each_device(5, measure_convolve), {}},
      {"gpu_gemm",
       "products of matrices in tiles, one and 4 at once",
       {},
       {},
       where,
       on_each_device(6, measure_gemm),
       {}},
      {"gpu_transfer", "one large tile, each way", {}, {}, where, on_each_device(2, measure_transfer), {}},
      {"gpu_out_of_core",
       "a product of matrices of four times the device's memory",
       {},
       {},
       where,
       on_each_device(3, measure_out_of_core),
       {},
       1},
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
  for (const auto& kind : troupe::list_devices()) {
    if (kind.devices.empty())
      note_absent("no " + kind.kind_name + " device: " + kind.remark);
    else
      names.push_back(kind.devices.front().name);
  }
  return names;
}

std::vector<std::string> only_present(const std::vector<std::string>& names) {
  std::vector<std::string> there;
  const auto all = troupe::list_devices({.measure = false});
  for (const auto& name : names) {
    std::string why = "no such device";
    bool found = false;
    for (const auto& kind : all) {
      if (name.starts_with(kind.kind_name + ":") && !kind.remark.empty()) why = kind.remark;
      for (const auto& device : kind.devices) found = found || device.name == name;
    }
    if (found)
      there.push_back(name);
    else
      note_absent("no " + name + ": " + why);
  }
  return there;
}

std::vector<group> device_groups(const settings& how) {
  auto groups = all_device_groups();
  for (const auto& device : how.devices)
    for (auto& each : table(device, how)) {
      const auto name = each.name.substr(0, each.name.find('/'));
      for (auto& group : groups)
        if (group.name == name) group.rows.push_back(each);
    }
  return groups;
}

}  // namespace bench
