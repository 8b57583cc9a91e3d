// What this file is for: opens the sockets that listen.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include <algorithm>

#include <troupe/error.hpp>

#include "net/tcp/admission.hpp"

namespace troupe::net::tcp {

listeners::~listeners() { close(); }

void listeners::close() {
  for (const int s : sockets_) ::close(s);
  sockets_.clear();
}

void listeners::open(const std::vector<endpoint>& where, bool loopback_only) {
  const bool version_4 = std::any_of(where.begin(), where.end(), [](const endpoint& e) { return e.host == "0.0.0.0"; });
  for (const endpoint& e : where) {
    std::vector<address> found;
    try {
      found = look_up(e);
    } catch (const error& unknown) {
      throw error(errc::io_failed, std::string("cannot listen: ") + unknown.what());
    }
    if (loopback_only && !std::all_of(found.begin(), found.end(), [](const address& a) { return a.loopback(); }))
      throw error(errc::bad_argument, "without credentials only loopback addresses may listen, not " + e.text() +
                                          ": give a cluster secret or certificates");
    address at = found.front();
    sockets_.push_back(listen_at(at, e, version_4));
    endpoint told = local_address(sockets_.back()).told();
    if (told.host != e.host && !at.any() && found.size() > 1) told.host = e.host;
    told_.push_back(told);
  }
}

}  // namespace troupe::net::tcp
