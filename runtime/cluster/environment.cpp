// What this file is for: what the environment says of the cluster that a program is to be part of.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdlib>

#include <troupe/cluster.hpp>

#include "runtime/old_names.hpp"

namespace troupe {

cluster_options with_environment(cluster_options o) {
  const auto text = [](const char* name) {
    const char* const v = std::getenv(name);
    return std::string(v ? v : "");
  };
  const auto list = [&](const char* name) {
    std::vector<std::string> all;
    const std::string from = text(name);
    for (std::size_t begin = 0; begin < from.size();) {
      const std::size_t end = std::min(from.find(',', begin), from.size());
      if (end != begin) all.push_back(from.substr(begin, end - begin));
      begin = end + 1;
    }
    return all;
  };
  detail::take_old_names(o);
  if (!o.cluster_name.empty() || !o.from_environment) return o;
  o.cluster_name = text("TROUPE_CLUSTER");
  if (o.cluster_name.empty()) return o;
  if (o.node_name.empty()) o.node_name = text("TROUPE_NODE");
  if (o.listen.empty()) o.listen = list("TROUPE_LISTEN");
  if (o.join.empty()) o.join = list("TROUPE_JOIN");
  o.multicast = o.multicast || text("TROUPE_MULTICAST") == "1";
  o.trusted_fabric = o.trusted_fabric || text("TROUPE_TRUSTED_FABRIC") == "1";
  // Takes one kind of proof from the environment, or none.
  if (o.secret_file.empty() && o.certificate.empty() && !o.insecure_loopback) {
    o.secret_file = text("TROUPE_SECRET_FILE");
    o.insecure_loopback = text("TROUPE_INSECURE_LOOPBACK") == "1";
  }
  return o;
}

}  // namespace troupe
