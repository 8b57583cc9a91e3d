// What this file is for: authorities and certificates for tests, made when they are needed.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>

#include "net/transport.hpp"

namespace wires {

/// An authority of its own, with a folder for its files that goes with it.
class authority {
 public:
  explicit authority(const std::string& name = "authority");
  ~authority();

  struct wish {
    std::string cluster = "test";
    int hours_valid = 1;   ///< from two hours ago until so many from now; negative: expired
    bool names_it = true;  ///< the cluster stands in the certificate
    std::string node{};    ///< what it calls the node; empty: nothing
  };
  /// A certificate with a key of its own, in files.
  troupe::net::credentials issue(const wish&) const;
  troupe::net::credentials issue() const { return issue(wish{}); }
  std::string folder() const;

 private:
  struct inside;
  std::unique_ptr<inside> inside_;
};

}  // namespace wires
