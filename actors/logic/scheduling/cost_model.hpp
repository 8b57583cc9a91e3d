// What this file is for: what a task will take: run times learned per kernel, size and kind of device; transfers per edge.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Pure: no clock, no thread. Run times are medians of recent samples, keyed by (kernel, size class, kind of device);
// the first sample of a key is dropped (cold caches, first touch of pages). Transfers are latency plus bytes over
// bandwidth, per edge between memory spaces; copies within one space cost nothing.
//
// What an earlier runtime has measured (`remember`) counts as one sample beside the new ones, the first of which is
// dropped here too: after the third call of a kernel that has changed two agree against it, and it is the new time
// that is predicted. Changed texts make another kernel. Only kernels with a choice between kinds are kept at all.
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
  /// Nanoseconds; zero while unknown.
  float predicted_ns() const { return median_; }
  bool known() const { return kept_ != 0; }
  /// The same while it is unknown: what the first one took, though that is no measure, or else `guess_ns`.
  float expected_ns(float guess_ns) const { return known() ? median_ : first_ > 0 ? first_ : guess_ns; }
  void learn(float ns);
  /// Starts from what was measured elsewhere; only before the first sample.
  void remember(float ns);
  /// How many samples were offered, the dropped first one included.
  std::uint32_t seen() const { return seen_; }
  /// What trials may have cost; see trials.
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

  /// The entry for a kernel; a reference stays valid.
  run_time& of(const detail::kernel_info&, size_class, device_kind);
  /// Before the first task that it is about.
  void remember(const remembered_time&);
  /// What has been measured here of kernels with bodies for several kinds.
  std::vector<remembered_time> measured() const;

  void set_edge(std::uint16_t from, std::uint16_t to, edge_cost);
  /// A copy of so many bytes took so long. While nobody has measured the way back, it is taken for the same.
  void learn_transfer(std::uint16_t from, std::uint16_t to, std::uint64_t bytes, float ns);
  /// A copy of so many bytes on an idle link took so long, and a round trip `round_trip_ns`: what costs less than half of
  /// what was believed is not believed any more. Nothing is taken for dearer: that is learned from transfers, of which
  /// there are none where a link is believed to be slow. True if it changed.
  bool correct(std::uint16_t from, std::uint16_t to, std::uint64_t bytes, float ns, float round_trip_ns);
  float transfer_ns(std::uint16_t from, std::uint16_t to, std::uint64_t bytes) const {
    if (from == to || bytes == 0) return 0;
    const edge* const known = find(from, to);
    const edge_cost& e = known ? known->cost : unknown_edge;
    return e.latency_ns + static_cast<float>(bytes) / e.bytes_per_ns;
  }
  /// What the edge is believed to cost, and from how many transfers that was learned.
  struct learned_edge {
    edge_cost cost;
    std::uint32_t transfers = 0;
  };
  learned_edge learned(std::uint16_t from, std::uint16_t to) const {
    const edge* const e = find(from, to);
    return e ? learned_edge{e->cost, e->transfers} : learned_edge{unknown_edge, 0};
  }
  /// That figure is no guess.
  bool knows_edge(std::uint16_t from, std::uint16_t to) const;

 private:
  struct shortcut {
    const detail::kernel_info* kernel = nullptr;
    std::uint32_t rest = 0;
    run_time* entry = nullptr;
  };
  struct entry {
    run_time time;
    remembered_time key;  // kernel 0: not for later
  };
  // An edge nobody has measured: slow enough to prefer a known one.
  static constexpr edge_cost unknown_edge{10'000, 1};
  static constexpr std::size_t shortcut_count = 64;
  std::array<shortcut, shortcut_count> shortcuts_{};
  std::unordered_map<std::uint64_t, std::unique_ptr<entry>> entries_;
  std::unordered_map<std::uint64_t, float> remembered_;  // by kernel, size and kind
  struct edge {
    edge_cost cost;
    bool measured = false;  // false: as the way back
    std::uint32_t transfers = 0;
  };
  edge& edge_of(std::uint16_t from, std::uint16_t to);
  const edge* find(std::uint16_t from, std::uint16_t to) const {
    return from < spaces_ && to < spaces_ ? &edges_[from * spaces_ + to] : nullptr;
  }
  std::vector<edge> edges_;  // a square, as large as the spaces that were named
  std::size_t spaces_ = 0;
};

/// One executor as a candidate for a task.
struct offer {
  std::uint16_t executor = 0;
  float queue_ns = 0;     // until it is free of what it was given from here
  float link_ns = 0;      // until its link is free
  float transfer_ns = 0;  // from then on, until the data is there
  float run_ns = 0;
  std::uint64_t bytes_missing = 0;
  std::uint64_t bytes_changed = 0;  // of these: of tiles that the task changes as a whole
  std::uint64_t bytes_direct = 0;   // of those missing: from other devices, not through the host
  float others_ns = 0;              // of a node: what others have given it, which is done before, too
  bool waits = false;               // for what it tries already: it gets no more until it is known how fast it is
  bool guessed = false;             // its run time is a guess, and as many as are to be tried are on their way
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
