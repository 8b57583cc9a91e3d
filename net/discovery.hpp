// What this file is for: the seam of discovery: where other nodes of the cluster might be.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Discovery finds candidates, nothing more: which process is there is asked by dialling, and whether it is a member by
// admission. A wrong address costs a connection that fails, wherever it comes from. Discovery finds this process, too.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/transport.hpp"

namespace troupe::net {

/// Datagrams to a group of hosts, signed with a key that only nodes of the cluster have.
struct multicast_options {
  /// An IPv4 group, and one of IPv6 that does not leave the local network. Empty: not over that protocol. A machine
  /// that does not have one of the two uses the other.
  std::string group = "239.255.84.82";
  std::string group_v6 = "ff12::5472:6f75:7065";
  std::uint16_t port = 7484;
  /// By name ("eth0"). Empty: all that are up, loopback too, and those that come up later.
  std::vector<std::string> interfaces{};
  int hops = 1;  ///< routers that a datagram may pass, and one
  std::chrono::milliseconds announce_every{1000};
  /// Datagrams a second that are looked at, of one address and of all together; the others are counted.
  int each_per_second = 100, all_per_second = 1000;
};

struct discovery_options {
  /// Addresses, or names that a dial resolves.
  std::vector<endpoint> seeds{};
  /// A file with one address a line, and comments behind '#'; read again when it changes. Empty: none.
  std::string file{};
  /// Names with several addresses, each of which is a candidate with that port.
  std::vector<endpoint> names{};
  /// How often file and names are looked at.
  std::chrono::milliseconds look_every{2000};
  /// A candidate is told again when so much time has passed, as long as it is found: nodes come back.
  std::chrono::milliseconds tell_again{5000};
  std::optional<multicast_options> multicast{};
  /// With multicast: what is announced, `listens_on` with the ports that it has. A host of "0.0.0.0", "::" or "" stands
  /// for the address that the datagram comes from, "0.0.0.0" for one of IPv4 only.
  identity self{};
  /// With multicast: the cluster's secrets, or those of a file for discovery alone. The first signs, each is accepted.
  std::vector<credentials::secret_bytes> secrets{};
};

/// Counts of what became of the datagrams of others. `received` is the sum of those from `own` to `accepted`.
struct discovery_counts {
  std::uint64_t sent = 0, unsent = 0;  ///< one for each interface and protocol
  std::uint64_t lost = 0;              ///< by the system, because too many came
  std::uint64_t received = 0;
  std::uint64_t own = 0;
  std::uint64_t too_many = 0;       ///< dropped unread, because of the limits
  std::uint64_t malformed = 0;      ///< or larger than any that a node sends
  std::uint64_t other_version = 0;  ///< of the protocol
  std::uint64_t other_cluster = 0;
  std::uint64_t forged = 0;    ///< not signed with a key of this cluster
  std::uint64_t replayed = 0;  ///< seen before, or older than what has been seen
  std::uint64_t accepted = 0;
};

class discovery {
 public:
  virtual ~discovery() = default;
  /// Begins to look. `found` is called with candidates that are new or due again, one call at a time, on threads of its
  /// own; it must not throw. Throws `error(bad_argument)` or `error(io_failed)` for options that make no sense, files
  /// that cannot be read, interfaces that are not there. A name without addresses is no error: they may come.
  virtual void start(std::function<void(std::vector<endpoint>)> found) = 0;
  /// `found` is not called any more. Takes as long as the system looks up a name, about 3 s at most. Idempotent; not
  /// from `found`.
  virtual void stop() = 0;
  virtual discovery_counts counts() const = 0;
  /// Returns what keeps discovery from finding more, one line each; empty if all is well.
  virtual std::vector<std::string> problems() const = 0;
};

std::unique_ptr<discovery> make_discovery(discovery_options);

}  // namespace troupe::net
