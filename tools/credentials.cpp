// What this file is for: making secrets and certificates, and saying what belongs where.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "tools/credentials.hpp"

#include <cstdio>

#include <troupe/credentials.hpp>

namespace troupe::tools {

void make_secret_file(const std::string& file) {
  make_cluster_secret(file);
  std::printf("made %s: copy it to each node, readable by its owner alone\n", file.c_str());
}

void make_authority(const std::string& folder, const std::string& cluster, int days) {
  make_cluster_authority(folder, cluster, days);
  std::printf("made an authority for the cluster %s in %s: ca.pem goes to each node, ca.key stays here\n",
              cluster.c_str(), folder.c_str());
}

void issue(const std::string& folder, const std::string& node, int days) {
  const auto made = issue_certificate(folder, node, days);
  std::printf("made %s and %s: copy both to the node %s, with %s\n", made.certificate.c_str(), made.key.c_str(),
              node.c_str(), made.authority.c_str());
}

}  // namespace troupe::tools
