// The questions to contenders about nodes: one workload per function, between this process and another one.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "../contender.hpp"
#include "../taskbench/steps.hpp"
#include "hosts.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace bench {

class filter_work;

struct copied_shares {
  double here = 0, there = 0;
};
struct two_times {
  double done = 0, here = 0;            ///< nanoseconds until all is done, and until it can be read here
  double cpu = 0;                       ///< nanoseconds of processors, of all processes, until all is done
  std::optional<double> there{};        ///< percent of the tasks that the other node ran
  std::optional<double> bytes_moved{};  ///< between the two
};

/// How the two processes reach each other, and what keeps others out.
struct link {
  route over = route::loopback;
  bool secure = true;   ///< TLS 1.3, TLS_AES_128_GCM_SHA256; else nothing, which nodes do on loopback only
  bool fabric = false;  ///< bodies through UCX's shared memory

  [[nodiscard]] std::string text() const {
    if (fabric) return "fabric";
    return std::string(secure ? "tls" : "plain") + (over == route::loopback ? "/loopback" : "/veth");
  }
  bool operator==(const link&) const = default;
};

/// How many nodes there are, and how many cores each has to itself.
struct crowd {
  std::size_t nodes = 2, cores = 1;

  /// "" for two nodes of one core, else "/4x1".
  [[nodiscard]] std::string text() const {
    return *this == crowd{} ? "" : "/" + std::to_string(nodes) + "x" + std::to_string(cores);
  }
  bool operator==(const crowd&) const = default;
};

/// A task that says whether what has been moved has arrived as it was: the sum of one number in each MiB.
inline constexpr std::size_t sampled_every = (1u << 20) / sizeof(std::uint64_t);

/// Two nodes were to work, and one did.
struct not_shared : std::runtime_error {
  using std::runtime_error::runtime_error;
};
inline constexpr double least_share = 20;  ///< percent of the tasks

class node_contender : public contender {
 public:
  /// Ends what was begun for earlier links.
  void start(unsigned, purpose) override { stop(); }

  /// Nanoseconds of each of so many round trips of nothing: an empty task, or 64 bytes there and back.
  virtual std::vector<double> round_trips(const link&, std::size_t) { return {}; }
  /// n empty tasks that run there, submission to all done; nanoseconds. With data, each updates one of 64 arrays there.
  virtual std::optional<double> tasks(const link&, std::size_t, bool) { return {}; }
  /// Nanoseconds of each of so many moves of so many bytes, from memory to memory, until this side knows that they are
  /// there. The memory on both sides has been used before.
  virtual std::vector<double> moves(const link&, std::size_t, int) { return {}; }
  /// Bytes copied in user space per byte moved, by this side and by the other, where they are counted.
  virtual std::optional<copied_shares> copies(const link&, std::size_t) { return {}; }
  /// Round trips while so many bytes are on their way.
  virtual std::vector<double> round_trips_beside(const link&, std::size_t) { return {}; }
  /// Steps of tasks, an equal part of each on each node, the first here: nanoseconds from the first task to the end of
  /// the last one. Every input is checked. One graph, of 16-byte outputs. `recorded`: all steps are recorded before the
  /// clock, and run.
  virtual std::optional<double> steps(const link&, const crowd&, const step_shape&, bool /*recorded*/) { return {}; }
  /// A factorisation, on two cores in all. Throws `not_shared` where one of the nodes has run next to nothing.
  virtual std::optional<two_times> cholesky(const link&, cholesky_problem&, std::size_t) { return {}; }
  /// A filtered image, on two cores in all; the same.
  virtual std::optional<two_times> filter(const link&, filter_work&) { return {}; }
};

std::unique_ptr<contender> make_troupe_nodes();
std::unique_ptr<contender> make_one_node();
std::unique_ptr<contender> make_asio();
std::unique_ptr<contender> make_ucx_perftest();
std::unique_ptr<contender> make_mpi();

}  // namespace bench
