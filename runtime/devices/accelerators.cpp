// What this file is for: finding vendors' runtimes and opening devices by name.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/devices/accelerators.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <troupe/devices.hpp>
#include <troupe/error.hpp>

#include "actors/gpu/gpu.hpp"
#include "devices/gpu/gpu.hpp"
#include "devices/host/topology.hpp"
#include "devices/opencl/opencl.hpp"
#include "runtime/costs/known_costs.hpp"

namespace troupe::detail {

namespace {

constexpr int lanes_max = 64;
constexpr const char* kinds[] = {"cuda", "hip", "opencl", "sim"};

std::unique_ptr<devices::accelerator_source> source_of(const std::string& kind, const std::string& origin,
                                                       const std::vector<std::string>& plugins) {
  auto wishes = devices::rtc::settings_from_environment();
  wishes.plugins = plugins;
  if (kind == "cuda") return devices::make_cuda_source(wishes);
  if (kind == "hip") return devices::make_hip_source(wishes);
  if (kind == "opencl") return devices::make_opencl_source({}, plugins);
  if (kind == "sim") return devices::make_sim_source(wishes);
  if (kind.empty()) throw error(errc::bad_argument, origin + ": a device without a name");
  throw error(errc::bad_argument, origin + ": '" + kind +
                                      "' is no kind of device; there are cuda, hip, opencl and sim, gpu for the first "
                                      "two, all for the first three, and none");
}

// True if the list is "none", which stands alone and means that the other list (options or environment) is not used.
bool says_none(const std::vector<device_use>& wanted, const std::string& origin) {
  const auto named = std::count_if(wanted.begin(), wanted.end(), [](const device_use& u) { return u.name == "none"; });
  if (named != 0 && wanted.size() != 1) throw error(errc::bad_argument, origin + ": \"none\" is named beside others");
  return named != 0;
}

// Replaces "gpu" and "all" by the kinds that they stand for.
std::vector<device_use> by_kind(const std::vector<device_use>& wanted) {
  std::vector<device_use> all;
  for (const device_use& use : wanted) {
    const std::size_t count = use.name == "gpu" ? 2 : use.name == "all" ? 3 : 0;
    if (count == 0) all.push_back(use);
    for (std::size_t i = 0; i < count; ++i) {
      all.push_back(use);
      all.back().name = kinds[i];
    }
  }
  return all;
}

// Returns the range [first, last) of the devices of a kind that the name means.
std::pair<int, int> range_of(const std::string& name, const devices::accelerator_source& source,
                             const std::string& origin) {
  const int count = source.count();
  const auto colon = name.find(':');
  if (colon == std::string::npos) return {0, count};
  int index = 0;
  const char* const end = name.data() + name.size();
  const auto [stopped, wrong] = std::from_chars(name.data() + colon + 1, end, index);
  if (wrong != std::errc() || stopped != end || index < 0)
    throw error(errc::bad_argument,
                origin + ": '" + name + "' is no device; write \"" + name.substr(0, colon) + ":0\"");
  if (index >= count)
    throw error(errc::no_executor,
                origin + ": there is no " + name + ": " +
                    (source.remark().empty() ? std::to_string(count) + " devices of this kind" : source.remark()));
  return {index, index + 1};
}

// Splits a list of names at its commas. An empty name is refused later, like other names without a meaning.
std::vector<device_use> split(std::string_view list) {
  std::vector<device_use> all;
  for (std::size_t comma = 0; comma != list.npos; list.remove_prefix(comma == list.npos ? 0 : comma + 1)) {
    comma = list.find(',');
    all.push_back({std::string(list.substr(0, comma))});
  }
  return all;
}

std::optional<devices::link_speeds> speeds_of(devices::accelerator& a, known_costs* costs, bool measure) {
  if (costs) return costs->links_of(a, measure);
  return measure ? std::optional(devices::measure_links(a)) : std::nullopt;
}

// Connects all pairs of devices and adds their link speeds; all devices of the kind must be open.
void add_peers(std::vector<device_info>& infos, std::vector<std::unique_ptr<devices::accelerator>>& opened,
               known_costs* costs, bool measure) {
  for (std::size_t i = 0; i < infos.size(); ++i)
    for (std::size_t k = i + 1; k < infos.size(); ++k) {
      devices::accelerator &a = *opened[i], &b = *opened[k];
      const bool there = a.connect(b.facts()), back = b.connect(a.facts());
      if (!there || !back) continue;
      devices::link_speeds s;
      if (costs)
        s = costs->peers_of(a, b, measure).value_or(s);
      else if (measure)
        s = devices::measure_peers(a, b);
      infos[i].peers.push_back({infos[k].name, s.in.bytes_per_ns, s.in.latency_ns / 1e3});
      infos[k].peers.push_back({infos[i].name, s.out.bytes_per_ns, s.out.latency_ns / 1e3});
    }
}

}  // namespace

std::vector<found_accelerator> find_accelerators(const std::vector<device_use>& in_options, const char* environment,
                                                 const std::vector<std::string>& plugins, bool check_kernels,
                                                 std::vector<std::string>& absent) {
  const bool from_options = !in_options.empty() || !environment || !*environment;
  const std::string origin = from_options ? "options::devices" : "TROUPE_DEVICES";
  const std::vector<device_use> named = from_options ? in_options : split(environment);
  if (says_none(named, origin)) return {};
  std::map<std::string, std::shared_ptr<devices::accelerator_source>> sources;
  std::map<std::string, int> uses;
  std::vector<found_accelerator> all;
  for (const device_use& use : by_kind(named)) {
    if (use.lanes < 1 || use.lanes > lanes_max)
      throw error(errc::bad_argument, origin + ": '" + use.name + "' must have between 1 and 64 lanes");
    if (use.deadline.count() < 0)
      throw error(errc::bad_argument, origin + ": the deadline of '" + use.name + "' is negative");
    const std::string kind = use.name.substr(0, use.name.find(':'));
    auto& source = sources[kind];
    if (!source) {
      source = source_of(kind, origin, plugins);
      if (source->count() == 0 && use.name == kind)
        absent.push_back(origin + ": of '" + kind +
                         "' there is nothing: " + (source->remark().empty() ? "no device" : source->remark()));
    }
    const auto [first, last] = range_of(use.name, *source, origin);
    for (int i = first; i < last; ++i) {
      std::string name = kind + ":" + std::to_string(i);
      std::string card = use.group.empty() ? name : "group " + use.group;
      if (const int before = uses[name]++; before != 0) name += "#" + std::to_string(before);
      all.push_back(
          {std::move(name), source->kind(), i, std::move(card), use.lanes, use.deadline,
           [source = source, i, lanes = gpu_copy_lanes + use.lanes, memory = use.memory_bytes, check_kernels] {
             auto opened = source->open(i, lanes, memory);
             if (check_kernels) opened->check_kernels();
             return opened;
           },
           [source = source, i] { return source->pinning(i); }});
    }
  }
  return all;
}

}  // namespace troupe::detail

namespace troupe {

device_info describe_host() {
  device_info d;
  d.name = "cpu:0";
  d.model = devices::processor_name();
  d.kind = device_kind::cpu;
  d.memory_bytes = devices::memory_bytes();
  d.compute_units = d.lanes = devices::usable_core_count();
  return d;
}

std::vector<device_listing> list_devices(const listing_options& how) {
  std::unique_ptr<detail::known_costs> costs;
  if (how.cost_cache != "none")
    costs = std::make_unique<detail::known_costs>(how.cost_cache, devices::usable_core_count());
  std::vector<device_listing> all;
  for (const char* kind : detail::kinds) {
    device_listing l;
    l.kind_name = kind;
    const auto source = detail::source_of(kind, "list_devices", how.plugin_folders);
    l.kind = source->kind();
    l.remark = source->remark();
    std::vector<std::unique_ptr<devices::accelerator>> opened;
    for (int i = 0; i < source->count(); ++i) {
      try {
        auto device = source->open(i, detail::gpu_copy_lanes + 1, 0);
        const devices::accelerator_facts& f = device->facts();
        device_info d{l.kind_name + ":" + std::to_string(i),
                      f.model,
                      f.driver,
                      f.kind,
                      f.memory_bytes,
                      f.compute_units,
                      device_use{}.lanes,
                      {},
                      {}};
        if (const auto s = detail::speeds_of(*device, costs.get(), how.measure))
          d.link = {s->in.bytes_per_ns, s->out.bytes_per_ns, s->in.latency_ns / 1e3, s->out.latency_ns / 1e3};
        l.devices.push_back(std::move(d));
        opened.push_back(std::move(device));
      } catch (const error& e) {
        if (!l.remark.empty()) l.remark += "; ";
        l.remark += l.kind_name + ":" + std::to_string(i) + ": " + e.what();
      }
    }
    try {
      detail::add_peers(l.devices, opened, costs.get(), how.measure);
    } catch (const error& e) {
      if (!l.remark.empty()) l.remark += "; ";
      l.remark += std::string("between devices: ") + e.what();
    }
    all.push_back(std::move(l));
  }
  return all;
}

}  // namespace troupe
