// What this file is for: finding vendors' runtimes and opening devices by name.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/accelerators.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include <troupe/devices.hpp>
#include <troupe/error.hpp>

#include "actors/gpu.hpp"
#include "devices/gpu/gpu.hpp"
#include "devices/host/topology.hpp"
#include "devices/opencl/opencl.hpp"
#include "runtime/known_costs.hpp"

namespace troupe::detail {

namespace {

constexpr int lanes_max = 64;
constexpr const char* kinds[] = {"cuda", "hip", "opencl", "sim"};

std::unique_ptr<devices::accelerator_source> source_of(const std::string& kind) {
  if (kind == "cuda") return devices::make_cuda_source();
  if (kind == "hip") return devices::make_hip_source();
  if (kind == "opencl") return devices::make_opencl_source();
  if (kind == "sim") return devices::make_sim_source();
  throw error(errc::bad_argument,
              "options::devices: '" + kind + "' is no kind of device; there are cuda, hip, opencl and sim");
}

std::optional<devices::link_speeds> speeds_of(devices::accelerator& a, known_costs* costs, bool measure) {
  if (costs) return costs->links_of(a, measure);
  return measure ? std::optional(devices::measure_links(a)) : std::nullopt;
}

}  // namespace

std::vector<found_accelerator> find_accelerators(const std::vector<device_use>& wanted) {
  std::map<std::string, std::shared_ptr<devices::accelerator_source>> sources;
  std::map<std::string, int> uses;
  std::vector<found_accelerator> all;
  for (const device_use& use : wanted) {
    const auto colon = use.name.find(':');
    const std::string kind = use.name.substr(0, colon);
    if (use.lanes < 1 || use.lanes > lanes_max)
      throw error(errc::bad_argument, "options::devices: '" + use.name + "' must have between 1 and 64 lanes");
    if (use.deadline.count() < 0)
      throw error(errc::bad_argument, "options::devices: the deadline of '" + use.name + "' is negative");
    auto& source = sources[kind];
    if (!source) source = source_of(kind);
    int first = 0, last = source->count();
    if (colon != std::string::npos) {
      const char* const end = use.name.data() + use.name.size();
      const auto [stopped, wrong] = std::from_chars(use.name.data() + colon + 1, end, first);
      if (wrong != std::errc() || stopped != end || first < 0)
        throw error(errc::bad_argument, "options::devices: '" + use.name + "' is no device; write \"" + kind + ":0\"");
      if (first >= last)
        throw error(errc::no_executor,
                    "options::devices: there is no " + use.name + ": " +
                        (source->remark().empty() ? std::to_string(last) + " devices of this kind" : source->remark()));
      last = first + 1;
    }
    for (int i = first; i < last; ++i) {
      std::string name = kind + ":" + std::to_string(i);
      if (const int before = uses[name]++; before != 0) name += "#" + std::to_string(before);
      all.push_back({std::move(name), source->kind(), use.lanes, use.deadline,
                     [source = source, i, lanes = gpu_copy_lanes + use.lanes, memory = use.memory_bytes] {
                       return source->open(i, lanes, memory);
                     }});
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
    const auto source = detail::source_of(kind);
    l.kind = source->kind();
    l.remark = source->remark();
    for (int i = 0; i < source->count(); ++i) {
      try {
        const auto device = source->open(i, detail::gpu_copy_lanes + 1, 0);
        const devices::accelerator_facts& f = device->facts();
        device_info d{l.kind_name + ":" + std::to_string(i),
                      f.model,
                      f.driver,
                      f.kind,
                      f.memory_bytes,
                      f.compute_units,
                      device_use{}.lanes,
                      {}};
        if (const auto s = detail::speeds_of(*device, costs.get(), how.measure))
          d.link = {s->in.bytes_per_ns, s->out.bytes_per_ns, s->in.latency_ns / 1e3, s->out.latency_ns / 1e3};
        l.devices.push_back(std::move(d));
      } catch (const error& e) {
        if (!l.remark.empty()) l.remark += "; ";
        l.remark += l.kind_name + ":" + std::to_string(i) + ": " + e.what();
      }
    }
    all.push_back(std::move(l));
  }
  return all;
}

}  // namespace troupe
