// What this file is for: how a runtime becomes a node of a cluster, and what it says of the others.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
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
/// Cluster options (`options::cluster`) make a runtime a node of a cluster. Nodes are processes with a runtime each, on
/// one machine or many. They find each other, prove that they belong to the cluster, and run each other's tasks: to the
/// node on which a task is spawned the others are executors. A kernel must be offered on the node that is to run it
/// (offer.hpp); nothing else of a program has to change. Without a cluster name there is no cluster, and the runtime
/// neither listens nor connects.
///
/// Environment: if `cluster_name` is empty and `from_environment` is on, the environment is read when the runtime is
/// constructed. TROUPE_CLUSTER is the name; with it TROUPE_NODE, TROUPE_LISTEN, TROUPE_JOIN (both lists, separated by
/// commas), TROUPE_MULTICAST ("1"), TROUPE_SECRET_FILE and TROUPE_TRUSTED_FABRIC ("1") replace the members below that
/// are not set; TROUPE_INSECURE_LOOPBACK ("1") means no proof between processes of one machine.
struct cluster_options {
  /// Off: the environment is not read, so that the program cannot become a node that way.
  bool from_environment = true;
  /// The name of the cluster. Nodes of other clusters are refused.
  std::string cluster_name{};
  [[deprecated("use cluster_name")]] std::string name{};
  /// The name of this node for others. Empty: the host's name, the process' number and, from the second such node of a
  /// process on, another number.
  std::string node_name{};
  [[deprecated("use node_name")]] std::string node{};
  /// Addresses to listen on, "10.0.0.7:4711"; port 0: any. Empty: the node does not listen, but connects to others.
  std::vector<std::string> listen{};
  /// Addresses at which others reach this node, if they are not those that it listens on (containers, address
  /// translation).
  std::vector<std::string> announce{};
  /// Addresses where other nodes may be, "10.0.0.8:4711" or "node8:4711"; each is tried again until a node answers.
  std::vector<std::string> join{};
  /// A file with such an address on each line; it may change.
  std::string join_file{};
  /// Names in DNS with several addresses (a headless service), "workers.default.svc:4711".
  std::vector<std::string> join_dns{};
  [[deprecated("use join_dns")]] std::vector<std::string> join_names{};
  /// Finds nodes of the local network by signed multicast datagrams.
  bool multicast = false;
  /// The key that signs these datagrams if certificates are used: a file as `troupe keygen` makes it. Empty: the
  /// secret.
  std::string discovery_key_file{};
  /// Proof that this node belongs to the cluster: a file with the cluster's secret (`troupe keygen`), or a certificate,
  /// its key and the authority's certificate (`troupe ca`, `troupe issue`).
  std::string secret_file{};
  std::string certificate{}, key{}, authority{};
  /// No proof and no encryption; on loopback addresses only.
  bool insecure_loopback = false;
  /// Sends large data from memory to memory through UCX (libtroupe_ucx.so), unencrypted, between nodes that both have
  /// it and this option: by shared memory on one machine, by RDMA between machines. Members are admitted as without it;
  /// where the fabric does not reach, data goes through sockets. Use it only if all users of the fabric, and all
  /// processes of this process's user, are trusted. While the runtime starts, UCX has handlers for five signals
  /// (docs/security.md).
  bool trusted_fabric = false;
  /// Takes tasks of other nodes.
  bool take_work = true;
  /// Lets tasks that are spawned here run on other nodes.
  bool give_work = true;
  /// Number of other nodes that this one works with at once.
  int nodes_max = 15;
  /// Run time of tasks that are repeated after a node dies, at most about so much for each node: tiles that only that
  /// node had are computed again, by one thread of this node. Before the limit would be exceeded, such tiles are copied
  /// to this node in the background, the oldest first. The copies take at most a tenth of what the link carries; while
  /// that is not enough, the limit is exceeded. 0: copies are made as often as that share allows.
  std::chrono::milliseconds replay_max{1000};
  /// Interval after which an idle link without recent copies is measured (three times 48 KiB each way); doubled after
  /// each measurement, up to 32 times the interval. Why: the cost of a link is otherwise learned from copies, and a
  /// link that was slow for a while is given none. 0: never.
  std::chrono::milliseconds link_check_after{10'000};
  /// Time for which a thread that has just received something from another node, has run something for one or waits for
  /// one polls before it sleeps. Larger: lower latency, more CPU time. A thread whose core others want does not poll.
  /// 0: no polling.
  std::chrono::microseconds spin{50};
};
#pragma GCC diagnostic pop

/// Returns the options as a runtime uses them: values of deprecated members are moved to the new ones, if those are
/// empty; if `cluster_name` is empty and `from_environment` is on, the environment is read. Any thread, while none
/// changes the environment.
cluster_options with_environment(cluster_options);

/// Another node as this one sees it.
struct node_report {
  std::string name;     ///< as `scope::at` takes it
  std::string id;       ///< 32 hexadecimal digits, anew for each process
  std::string address;  ///< where it listens; empty: nowhere
  int threads = 0;
  std::uint64_t kernels = 0;                    ///< kernels that it offers
  std::uint64_t tasks = 0;                      ///< tasks of this node that it has run
  std::uint64_t bytes_out = 0, bytes_in = 0;    ///< over the wire, from and to this node
  std::uint64_t fabric_out = 0, fabric_in = 0;  ///< of these, through the trusted fabric
};

/// An address at which the last attempt to connect failed, with the reason.
struct connection_failure {
  std::string address;  ///< as it was given, or as others have told it
  /// `errc::unreachable`: nothing answers there; `errc::refused`: one of the two does not accept the other as a node of
  /// its cluster; `errc::protocol_error`: what answers there is not a node.
  errc code = errc::unreachable;
  std::string why;  ///< in words
};
using refusal_report [[deprecated("use connection_failure")]] = connection_failure;

}  // namespace troupe
