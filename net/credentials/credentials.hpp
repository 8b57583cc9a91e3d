// What this file is for: what a node proves itself with, read from files and looked over before it is used.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "net/transport.hpp"

namespace troupe::net {

/// A secret file, or certificate, key and authority together; or nothing at all.
struct credential_files {
  std::string secret_file{};
  std::string certificate{}, key{}, authority{};
};

/// Throws `error(io_failed)` for what cannot be read, `error(bad_argument)` for what is not fit to be used, each with
/// the file's name and what to do: a key or a secret that others than its owner may read, a key that is not the
/// certificate's, a certificate that peers would refuse, or that is not of the cluster (any is right if `cluster` is
/// empty).
credentials load(const credential_files&, std::string_view cluster = {});

/// Returns the names that a certificate in a file gives its node; none if it names none. Throws as `load` does.
std::vector<std::string> node_names_in(const std::string& certificate);

/// The secrets in a file: 64 hexadecimal digits a line, at most 16 lines; empty lines do not count.
std::vector<credentials::secret_bytes> read_secrets(const std::string& file);

/// Overwrites the secrets and forgets them.
void wipe(std::vector<credentials::secret_bytes>&);

/// A key for one purpose from a secret that serves several, so that what one use gives away is worth nothing to another
/// (HKDF with SHA-256, RFC 5869, without salt, the purpose as info).
credentials::secret_bytes derive(const credentials::secret_bytes&, std::string_view purpose);

}  // namespace troupe::net
