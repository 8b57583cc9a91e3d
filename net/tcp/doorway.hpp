// What this file is for: what accepting and dialling share: this process's identity, its proof, where sessions go.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/tcp/loop.hpp"
#include "net/tcp/roster.hpp"
#include "net/tcp/talk.hpp"
#include "net/tcp/tls.hpp"
#include "net/transport.hpp"

namespace troupe::net::tcp {

struct doorway {
  const transport_options& options;
  identity self;     ///< with the addresses where it listens
  const tls* proof;  ///< null: plain, loopback only
  loop& control;
  loop& bulk;
  transport_events& events;
  roster& sessions;

  limits takes() const { return {options.frame_max, options.chunk_bytes}; }
  loop::time_point deadline() const { return std::chrono::steady_clock::now() + options.handshake; }
  /// On that loop from now on.
  std::shared_ptr<talk> open(loop& on, int socket, const address& peer, bool dials) const {
    ssl_st* const s = proof == nullptr ? nullptr : dials ? proof->dials() : proof->accepts();
    return std::make_shared<talk>(on, std::make_unique<stream>(socket, s), peer, peer.told().text());
  }
  /// Its certificate says what a node is called; of several names it may choose.
  void bind_name(identity& who, talk& t) const {
    if (proof != nullptr) who.name = one_of(proof->node_names(t.io().tls()), who.name);
  }
  /// Returns the other side's name for this node.
  std::string own_name(talk& t) const {
    return proof == nullptr ? self.name : one_of(proof->own_node_names(t.io().tls()), self.name);
  }
  static std::string one_of(const std::vector<std::string>& names, const std::string& chosen) {
    return names.empty() || std::ranges::find(names, chosen) != names.end() ? chosen : names.front();
  }
  std::string objection(talk& t) const { return proof == nullptr ? "" : proof->objection(t.io().tls()); }
  /// A session, both of whose connections have been agreed on. On the control thread.
  void admit(identity who, const limits& peer_takes, std::uint64_t number, std::optional<endpoint> dialled,
             const endpoint& remote, tcp_session::streams streams) const {
    // "Every address" is that under which the peer is seen here.
    for (endpoint& e : who.listens_on) {
      if (e.host == "0.0.0.0" || e.host == "::") e.host = remote.host;
    }
    sessions.admit({std::move(who), remote, std::move(dialled), number, peer_takes, takes(), options.unsent_max},
                   std::move(streams));
  }
};

}  // namespace troupe::net::tcp
