// What this file is for: making what the nodes of a cluster prove themselves with: secrets, an authority, certificates.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A cluster has either one secret that all nodes know, or an authority that issues a certificate to each. Any thread may
// call; nothing that is there is ever replaced. Errors: `error(bad_argument)` for a name, a number of days or a folder
// that is not fit, `error(io_failed)` for a file that is there already or cannot be written.
#pragma once

#include <string>

namespace troupe {

/// Makes a file with 32 random bytes, as 64 hexadecimal digits, that its owner alone may read: the secret of a cluster.
/// While a secret is replaced the file has a line for each: the first is used, all are accepted.
void make_cluster_secret(const std::string& file);

/// Makes an authority for the cluster of that name: `ca.pem`, which all nodes need, and `ca.key`, which only
/// `issue_certificate` needs and nobody else may have, in a folder that is made if it is not there (those above it are
/// not). Good for so many days.
void make_cluster_authority(const std::string& folder, const std::string& cluster, int days = 3650);

/// The three files that a node needs.
struct certificate_files {
  std::string certificate{}, key{}, authority{};
};

/// Issues a certificate for a node of that name, which is for people and need not be the machine's: `NODE.pem` and
/// `NODE.key` in the authority's folder. Good for so many days, at most as long as the authority: a
/// certificate that would last less than a day longer ends with it, for more error(errc::bad_argument) is thrown.
certificate_files issue_certificate(const std::string& folder, const std::string& node, int days = 365);

}  // namespace troupe
