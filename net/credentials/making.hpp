// What this file is for: making what a cluster proves itself with: secrets, an authority, certificates of members.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// An authority is a folder: `ca.pem` for everybody, `ca.key` for nobody else; `NODE.pem` and `NODE.key` of the nodes
// that it has issued certificates to. Nothing that is there is ever replaced.
#pragma once

#include <string>

namespace troupe::net {

/// A file with one random secret.
void make_secret(const std::string& file);

/// The folder is made if it is not there. Good for so many days.
void make_authority(const std::string& folder, const std::string& cluster, int days);

struct issued_files {
  std::string certificate{}, key{}, authority{};
};

/// For a member of the authority's cluster; not for longer than the authority itself.
issued_files issue_member(const std::string& folder, const std::string& node, int days);

}  // namespace troupe::net
