// What this file is for: TLS 1.3 as a cluster uses it: proof on both sides, by a secret or certificates, nothing else.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "net/transport.hpp"

struct ssl_st;

namespace troupe::net::tcp {

class tls {
 public:
  /// Throws `error(bad_argument)` for credentials that are not of one kind or do not fit together, `error(io_failed)`
  /// for files that cannot be read.
  tls(const credentials&, const std::string& cluster);
  ~tls();
  tls(const tls&) = delete;
  tls& operator=(const tls&) = delete;

  /// A connection that has not shaken hands; the caller's to free.
  ssl_st* dials() const;
  ssl_st* accepts() const;
  /// Why the other side, after the handshake, is not of this cluster; empty if it is.
  std::string objection(ssl_st*) const;
  /// Returns the names that the other side's certificate gives its node; none where there is no certificate, or it
  /// names none.
  std::vector<std::string> node_names(ssl_st*) const;
  /// Returns the names that this side's certificate gives.
  std::vector<std::string> own_node_names(ssl_st*) const;

 private:
  struct inside;
  std::unique_ptr<inside> inside_;
};

}  // namespace troupe::net::tcp
