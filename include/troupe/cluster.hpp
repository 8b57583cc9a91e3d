// What this file is for: how a runtime becomes a node of a cluster, and what it says of the others.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Nodes are processes with a runtime each, on one machine or many. They find each other, prove that they belong to the
// cluster, and run each other's tasks: to the node where a task is spawned the others are executors. What a task names
// must be offered where it is to run (offer.hpp); nothing else of a program has to change.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <troupe/error.hpp>

namespace troupe {

// Constructors that the compiler makes name the deprecated members, too: that is no use of them.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
/// Of `options::cluster`. Without a name there is no cluster, and nothing listens or is dialled.
///
/// If `cluster_name` is empty, the environment is read when the runtime is constructed: TROUPE_CLUSTER is that name, and
/// with it TROUPE_NODE, TROUPE_LISTEN, TROUPE_JOIN (both lists, separated by commas), TROUPE_MULTICAST ("1"),
/// TROUPE_SECRET_FILE and TROUPE_TRUSTED_FABRIC ("1") stand for what is below and not set; TROUPE_INSECURE_LOOPBACK ("1")
/// for no proof between processes of one machine. Set `from_environment` to false where a program must not become a node
/// that way.
struct cluster_options {
  bool from_environment = true;
  /// The name of the cluster. Nodes of another cluster are strangers.
  std::string cluster_name{};
  [[deprecated("use cluster_name")]] std::string name{};
  /// What others call this node; empty: the host's name, the process' number
  /// and, from a process' second such node on, a number.
  std::string node_name{};
  [[deprecated("use node_name")]] std::string node{};
  /// Addresses to listen on, "10.0.0.7:4711"; port 0: any. Empty: it only dials.
  std::vector<std::string> listen{};
  /// What others are told to dial, where that is not what it listens on (containers, address translation).
  std::vector<std::string> announce{};
  /// Addresses where other nodes may be, "10.0.0.8:4711" or "node8:4711"; each is tried again until somebody is there.
  std::vector<std::string> join{};
  /// A file with one such address a line; it may change.
  std::string join_file{};
  /// Names with several addresses (a headless service), "workers.default.svc:4711".
  std::vector<std::string> join_dns{};
  [[deprecated("use join_dns")]] std::vector<std::string> join_names{};
  /// Nodes of the local network are found by signed multicast datagrams.
  bool multicast = false;
  /// The key that signs them where certificates are used: a file as `troupe keygen` makes it. Empty: the secret.
  std::string discovery_key_file{};
  /// What proves that this node belongs to the cluster: a file with the cluster's secret (`troupe keygen`), or a
  /// certificate, its key and the authority's certificate (`troupe ca`, `troupe issue`).
  std::string secret_file{};
  std::string certificate{}, key{}, authority{};
  /// No proof and no encryption; on loopback addresses only.
  bool insecure_loopback = false;
  /// Long bodies go from memory to memory through UCX (libtroupe_ucx.so), in clear, between nodes that have it and say so
  /// here: by shared memory on one machine, by RDMA between machines. Members are admitted as without it, and what does
  /// not reach goes through sockets. Only where whoever is on the fabric or has this process's user is trusted. While the
  /// runtime starts UCX has handlers for five signals (docs/security.md).
  bool trusted_fabric = false;
  /// Takes tasks of other nodes. Off: it only gives.
  bool take_work = true;
  /// Tasks spawned here may run elsewhere.
  bool give_work = true;
  /// Other nodes that this one works with at once.
  int nodes_max = 15;
  /// What a node has computed and nobody else has is computed again when it dies, by one thread of this node: at most
  /// about so much run time of tasks for each node that dies. Before that would be exceeded, tiles are copied to this node
  /// in the background, those first that have been away longest. More is risked while a tenth of what the link carries
  /// would not do. 0: as often as that allows.
  std::chrono::milliseconds replay_max{1000};
  /// What copies to a node cost is learned from copies. Where none have taught it for so long, and nothing is under way, the
  /// link is tried with three times 48 KiB each way, so that one that was slow for a while is not left alone for good; then
  /// more and more rarely, up to 32 times as long. 0: never.
  std::chrono::milliseconds link_check_after{10'000};
  /// How long a thread that has just heard of another node, has run something for one or waits for one looks for more
  /// before it sleeps: on a core that sleeps, waking it takes longer than an empty task's way there and back. Where others
  /// want the core it sleeps at once. 0: always.
  std::chrono::microseconds spin{50};
};
#pragma GCC diagnostic pop

/// What a runtime makes of these options: what is said under a deprecated name stands under the new one, where that is
/// empty; and where there is no `cluster_name` and `from_environment` is on, with what the environment
/// says. Any thread, while none changes the environment.
cluster_options with_environment(cluster_options);

/// Another node as this one sees it.
struct node_report {
  std::string name;     ///< as `scope::at` takes it
  std::string id;       ///< 32 hexadecimal digits, anew for each process
  std::string address;  ///< where it listens; empty: nowhere
  int threads = 0;
  std::uint64_t kernels = 0;                    ///< that it offers
  std::uint64_t tasks = 0;                      ///< of this node that it has run
  std::uint64_t bytes_out = 0, bytes_in = 0;    ///< over the wire, from and to this node
  std::uint64_t fabric_out = 0, fabric_in = 0;  ///< of these, through the trusted fabric
};

/// An address at which the last attempt to connect failed, and why.
struct connection_failure {
  std::string address;  ///< as it was given, or as others have told it
  /// `errc::unreachable`: nobody answers there; `errc::refused`: the two do not take each other for nodes of one cluster;
  /// `errc::protocol_error`: whoever listens there is no node.
  errc code = errc::unreachable;
  std::string why;  ///< in words
};
using refusal_report [[deprecated("use connection_failure")]] = connection_failure;

}  // namespace troupe
