// What this file is for: the bodies of <troupe/credentials.hpp>.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <utility>

#include <troupe/credentials.hpp>

#include "net/credentials/making.hpp"

namespace troupe {

void make_cluster_secret(const std::string& file) { net::make_secret(file); }

void make_cluster_authority(const std::string& folder, const std::string& cluster, int days) {
  net::make_authority(folder, cluster, days);
}

certificate_files issue_certificate(const std::string& folder, const std::string& node, int days) {
  auto made = net::issue_member(folder, node, days);
  return {std::move(made.certificate), std::move(made.key), std::move(made.authority)};
}

}  // namespace troupe
