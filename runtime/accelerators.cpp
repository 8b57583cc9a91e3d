// What this file is for: finding vendors' runtimes and opening devices by name.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/accelerators.hpp"

#include <algorithm>
#include <charconv>
#include <map>

#include <troupe/devices.hpp>
#include <troupe/error.hpp>

#include "actors/gpu.hpp"
#include "devices/gpu/gpu.hpp"
#include "devices/opencl/opencl.hpp"

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

std::vector<device_listing> list_devices() {
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
        l.devices.push_back(
            {l.kind_name + ":" + std::to_string(i), f.model, f.driver, f.kind, f.memory_bytes, f.compute_units});
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
