// What this file is for: what a task will take: run times by kernel, size and kind of device; transfers by edge.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Pure: no clock, no thread. Run times are medians of recent samples, keyed by (kernel, size class, kind of device);
// the first sample of a key is dropped (cold caches, first touch of pages). Transfers are latency plus bytes over
// bandwidth, per edge between memory spaces; copies within one space cost nothing.
//
// A time that an earlier runtime has measured (`remember`) counts as one sample beside the new ones, the first of which
// is dropped here too: after the third call of a kernel that has changed, two agree against it, and the new time is
// predicted. Changed texts make another kernel. Only kernels with a choice between kinds are kept at all.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include <troupe/detail/task.hpp>

namespace troupe::logic {

/// Bytes touched, as a power of two.
using size_class = std::uint8_t;
size_class size_class_of(std::uint64_t bytes);

class run_time {
 public:
  static constexpr std::uint32_t window = 9;
  /// Returns nanoseconds; zero while unknown.
  float predicted_ns() const { return median_; }
  bool known() const { return kept_ != 0; }
  /// Returns the same, but while it is unknown the time of the first call, though that is no measure, or else
  /// `guess_ns`.
  float expected_ns(float guess_ns) const { return known() ? median_ : first_ > 0 ? first_ : guess_ns; }
  void learn(float ns);
  /// Starts from a time measured by an earlier runtime; only before the first sample.
  void remember(float ns);
  /// Returns the number of samples offered, with the dropped first one.
  std::uint32_t seen() const { return seen_; }
  /// Returns the time that trials may have cost; see trials.
  double staked_ns() const { return staked_ns_; }
  void stake(float ns) { staked_ns_ += ns; }

 private:
  std::array<float, window> recent_{};
  std::uint32_t seen_ = 0, kept_ = 0;
  float median_ = 0, first_ = 0;
  double staked_ns_ = 0;
};

struct edge_cost {
  float latency_ns = 0;
  float bytes_per_ns = 0;  // not zero
};

/// A run time that outlives its runtime.
struct remembered_time {
  std::uint64_t kernel = 0;  ///< name, signature and texts
  size_class size = 0;
  device_kind kind = device_kind::cpu;
  float ns = 0;
};

class cost_model {
 public:
  cost_model();

  /// Returns the entry for a kernel; the reference stays valid.
  run_time& of(const detail::kernel_info&, size_class, device_kind);
  /// Returns the entry if there is one, else null. Several threads may call it while nobody calls anything else.
  const run_time* find(const detail::kernel_info&, size_class, device_kind) const;
  /// Adds a time of an earlier runtime; to be called before the first task of that kernel.
  void remember(const remembered_time&);
  /// Returns the times measured here of kernels with bodies for several kinds.
  std::vector<remembered_time> measured() const;

  void set_edge(std::uint16_t from, std::uint16_t to, edge_cost);
  /// Learns from a copy of so many bytes that took so long. While the way back has not been measured, it gets the same
  /// cost.
  void learn_transfer(std::uint16_t from, std::uint16_t to, std::uint64_t bytes, float ns);
  /// Corrects an edge by a copy on an idle link that took `ns`, and a round trip: the believed cost is replaced if the
  /// copy took less than half of it. Costs are never raised here: that is learned from transfers, of which there are
  /// none where a link is believed to be slow. True if the edge changed.
  bool correct(std::uint16_t from, std::uint16_t to, std::uint64_t bytes, float ns, float round_trip_ns);
  float transfer_ns(std::uint16_t from, std::uint16_t to, std::uint64_t bytes) const {
    if (from == to || bytes == 0) return 0;
    const edge* const known = find(from, to);
    const edge_cost& e = known ? known->cost : unknown_edge;
    return e.latency_ns + static_cast<float>(bytes) / e.bytes_per_ns;
  }
  /// Believed cost of an edge, and the number of transfers that it was learned from.
  struct learned_edge {
    edge_cost cost;
    std::uint32_t transfers = 0;
  };
  learned_edge learned(std::uint16_t from, std::uint16_t to) const {
    const edge* const e = find(from, to);
    return e ? learned_edge{e->cost, e->transfers} : learned_edge{unknown_edge, 0};
  }
  /// True if the edge's cost was measured: it is no guess.
  bool knows_edge(std::uint16_t from, std::uint16_t to) const;

 private:
  struct shortcut {
    const detail::kernel_info* kernel = nullptr;
    std::uint32_t rest = 0;
    run_time* entry = nullptr;
  };
  struct entry {
    run_time time;
    remembered_time key;  // kernel 0: not kept for later runtimes
  };
  // Cost of an edge that has not been measured: slow enough to prefer a known one.
  static constexpr edge_cost unknown_edge{10'000, 1};
  static constexpr std::size_t shortcut_count = 64;
  static std::size_t shortcut_of(const detail::kernel_info&, std::uint32_t rest);
  static std::uint64_t entry_key(const detail::kernel_info&, std::uint32_t rest);
  std::array<shortcut, shortcut_count> shortcuts_{};
  std::unordered_map<std::uint64_t, std::unique_ptr<entry>> entries_;
  std::unordered_map<std::uint64_t, float> remembered_;  // by kernel, size and kind
  struct edge {
    edge_cost cost;
    bool measured = false;  // false: a guess, or that of the way back
    std::uint32_t transfers = 0;
  };
  edge& edge_of(std::uint16_t from, std::uint16_t to);
  const edge* find(std::uint16_t from, std::uint16_t to) const {
    return from < spaces_ && to < spaces_ ? &edges_[from * spaces_ + to] : nullptr;
  }
  std::vector<edge> edges_;  // a square matrix that covers the spaces named so far
  std::size_t spaces_ = 0;
};

/// An executor as a candidate for a task.
struct offer {
  std::uint16_t executor = 0;
  float queue_ns = 0;     // until it has a slot free of work given from here
  float link_ns = 0;      // until its link is free
  float transfer_ns = 0;  // from then on, until the data is there
  float run_ns = 0;
  std::uint64_t bytes_missing = 0;
  std::uint64_t bytes_changed = 0;  // of the missing bytes: of tiles that the task changes as a whole
  std::uint64_t bytes_direct = 0;   // of the missing bytes: from other devices, not through the host
  float others_ns = 0;              // of a node: work from other owners, which is done before
  bool waits = false;               // for the tasks that it tries: it gets no more until its speed is known
  bool guessed = false;             // its run time is a guess, and enough such tasks are on their way
  float finish_ns() const {
    if (waits) return 1e30f;
    const float there_ns = link_ns + transfer_ns;
    const float free_ns = queue_ns + others_ns;
    return (free_ns > there_ns ? free_ns : there_ns) + run_ns;
  }
};

/// The index of the offer with the earliest finish; ties go to fewer bytes moved, then to the first.
std::size_t best_offer(std::span<const offer>);

}  // namespace troupe::logic
