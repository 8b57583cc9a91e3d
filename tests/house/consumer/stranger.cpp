// Uses the installed library as a newcomer would, to prove that headers and libraries arrive whole.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// stranger                     runs a task
// stranger devices [FOLDER]    says of each kind of device what there is; FOLDER: options::plugin_folders
// stranger node ADDRESS        has the node "worker", which listens there, run the kernel of a plugin
#include <chrono>
#include <cstdio>
#include <string>

#include <troupe/troupe.hpp>

#include "kernels.hpp"

namespace {

int show_devices(const char* folder) {
  troupe::listing_options how{.cost_cache = "none"};
  if (folder) how.plugin_folders = {folder};
  for (const auto& kind : troupe::list_devices(how))
    std::printf("%s %zu %s\n", kind.kind_name.c_str(), kind.devices.size(), kind.remark.c_str());
  troupe::options o{.devices = {{"opencl"}}, .cost_cache = "none"};
  o.plugin_folders = how.plugin_folders;
  troupe::runtime rt(o);
  for (const std::string& remark : rt.report().remarks) std::printf("remark %s\n", remark.c_str());
  return 0;
}

int work_at_node(const char* address) {
  troupe::options o;
  o.cluster.cluster_name = "lab";
  o.cluster.insecure_loopback = true;
  o.cluster.join = {address};
  troupe::runtime rt(o);
  if (!rt.wait_for_nodes(1, std::chrono::seconds(20))) return 1;
  const auto a = rt.filled<float>({1000}, troupe::tiles(100), 2.0f);
  rt.for_each({.where = troupe::scope::at("worker")}, troupe::grid(1000), scale, update(a), 21.0f);
  const float value = a.read()(999);
  std::printf("%.0f, by %s\n", static_cast<double>(value), rt.nodes().at(0).name.c_str());
  return value == 42 && rt.nodes().at(0).tasks == 10 ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  if (count == 3 && std::string(words[1]) == "node") return work_at_node(words[2]);
  if (count > 1 && std::string(words[1]) == "devices") return show_devices(count > 2 ? words[2] : nullptr);
  troupe::runtime rt;
  auto sum = rt.spawn([] { return 1 + 2; });
  const int value = sum.get();
  std::printf("1 + 2 = %d\n", value);
  return value == 3 ? 0 : 1;
}
