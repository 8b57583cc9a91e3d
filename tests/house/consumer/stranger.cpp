// Uses the installed library as a newcomer would, to prove that headers and libraries arrive whole.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// stranger                     runs a task
// stranger devices [FOLDER]    says of each kind of device what there is; FOLDER: options::plugin_folders
#include <cstdio>
#include <string>

#include <troupe/troupe.hpp>

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

}  // namespace

int main(int count, char** words) {
  if (count > 1 && std::string(words[1]) == "devices") return show_devices(count > 2 ? words[2] : nullptr);
  troupe::runtime rt;
  auto sum = rt.spawn([] { return 1 + 2; });
  const int value = sum.get();
  std::printf("1 + 2 = %d\n", value);
  return value == 3 ? 0 : 1;
}
