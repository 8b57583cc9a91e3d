// What this file is for: making what the nodes of a cluster prove themselves with: secrets, an authority, certificates.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A cluster has either one secret that all nodes know, or an authority that issues a certificate to each node. All
// functions may be called on any thread, and never replace a file. They throw `error(bad_argument)` for a wrong name,
// number of days or folder, and `error(io_failed)` for a file that exists already or cannot be written.
#pragma once

#include <string>

namespace troupe {

/// Makes the secret of a cluster: a file with 32 random bytes, as 64 hexadecimal digits, that only its owner may read.
/// While a secret is being replaced the file has a line for each: the first is used, all are accepted.
void make_cluster_secret(const std::string& file);

/// Makes an authority for the cluster of that name: `ca.pem`, which all nodes need, and `ca.key`, which only
/// `issue_certificate` needs and which must be kept secret, in a folder that is made if it does not exist (those above
/// it are not). Valid for `days`.
void make_cluster_authority(const std::string& folder, const std::string& cluster, int days = 3650);

/// The three files that a node needs.
struct certificate_files {
  std::string certificate{}, key{}, authority{};
};

/// Issues a certificate for a node of that name, which is for people and need not be the machine's: `NODE.pem` and
/// `NODE.key` in the authority's folder. Valid for `days`, at most as long as the authority: a certificate that would
/// last less than a day longer ends with it, for more `error(bad_argument)` is thrown.
certificate_files issue_certificate(const std::string& folder, const std::string& node, int days = 365);

}  // namespace troupe
