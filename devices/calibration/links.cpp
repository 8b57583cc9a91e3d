// What this file is for: timing copies of growing size on the seam.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "devices/calibration/links.hpp"

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include <troupe/error.hpp>

namespace troupe::devices {

namespace {

using steady = std::chrono::steady_clock;

constexpr int lane_in = 0;
// Larger copies tell nothing new, and pinning more memory takes longer than copying it.
constexpr std::size_t bytes_max = std::size_t{8} << 20, bytes_min = std::size_t{16} << 10, bytes_small = 256;
constexpr std::size_t small_samples = 9, samples = 3;
constexpr std::size_t samples_max = 1000;
constexpr int overtime = 10, patience = 40;

constexpr std::chrono::microseconds spin_max(2000), slack(50);

class bench {
 public:
  /// With a peer copies come from its memory, else they go to and from the host's.
  bench(accelerator& a, std::chrono::nanoseconds budget, accelerator* peer = nullptr)
      : in_(a), peer_(peer), lane_out_(a.facts().lanes > 1 ? 1 : 0), give_up_(steady::now() + patience * budget) {
    // Half of what the device may give at most: a small limit is no reason to know nothing.
    for (bytes_ = bytes_max; bytes_ >= bytes_min; bytes_ /= 4) {
      if (bytes_ > a.facts().memory_bytes / 2) continue;
      memory_ = a.allocate(lane_in, bytes_);
      if (memory_ && peer_) there_ = peer_->allocate(lane_in, bytes_);
      if (memory_ && !peer_) host_ = a.allocate_pinned(bytes_);
      if (is_ready()) break;
      release();
    }
    if (!is_ready()) return;
    if (host_) std::memset(host_, 1, bytes_);  // pages that nobody has touched copy faster than real ones
    if (there_) reach(*peer_, lane_in, peer_->record(lane_in, false), steady::now());
    a.wait(lane_out_, lane_in, a.record(lane_in, false));
  }
  bench(const bench&) = delete;
  bench& operator=(const bench&) = delete;
  ~bench() {
    if (idle_) release();  // else it goes with the device: giving it back would wait for what never ends
  }

  // Beyond the budget only until a copy lasts clearly longer than smaller ones: on a busy machine all take as long as
  // the time slices of others.
  link_speed measure(bool in, std::chrono::nanoseconds budget) {
    if (!is_ready()) return {};
    const auto begin = steady::now(), end = begin + budget, last = begin + overtime * budget;
    once(in, bytes_small);  // the first one makes what all others find
    const auto small = timed(in, bytes_small, small_samples, begin + budget / 4, last);
    const sample_verdict latency = judge(small);
    link_speed s;
    s.latency_ns = latency.ns;
    s.agreed = latency.agreed;
    float before = 0;
    for (std::size_t bytes = bytes_min;; bytes *= 4) {
      bytes = std::min(bytes, bytes_);
      // The fastest: a process that takes the core away makes a copy slower by more than a large one takes.
      const float ns = timed(in, bytes, samples, last, last).front();
      s.bytes_per_ns = static_cast<float>(bytes) / std::max(ns - small.front(), ns / 2);
      const bool is_clear = before != 0 && ns >= 2 * before && ns >= 2 * small.front();
      before = ns;
      const auto now = steady::now();
      const std::chrono::nanoseconds next(static_cast<std::int64_t>(4 * static_cast<float>(samples) * ns));
      if (bytes == bytes_ || (is_clear && now + next > end)) return s;
      if (now > last) return {};
    }
  }

 private:
  bool is_ready() const { return host_ || there_; }

  float once(bool in, std::size_t bytes) {
    constexpr strides line{0, 0, 0, 1};
    const std::array<index_t, rank_max> count{1, 1, 1, static_cast<index_t>(bytes)};
    const int lane = in ? lane_in : lane_out_;
    idle_ = false;
    const auto begin = steady::now();
    if (there_)
      in_.copy_from(lane, {memory_, 0}, line, peer_->facts(), {there_, 0}, line, count, 1);
    else if (in)
      in_.copy_in(lane, {memory_, 0}, line, host_, line, count, 1);
    else
      in_.copy_out(lane, host_, line, {memory_, 0}, line, count, 1);
    reach(in_, lane, in_.record(lane, false), begin);
    idle_ = true;
    return std::chrono::duration<float, std::nano>(steady::now() - begin).count();
  }

  void reach(accelerator& a, int lane, ticket t, steady::time_point since) const {
    while (a.completed(lane) < t) {
      if (steady::now() > give_up_) {
        a.give_up();
        throw error(errc::device_failed, a.facts().name + ": a copy that was to measure its link did not end");
      }
      wait_since(since);
    }
  }

  // A thread that yields on a busy machine comes back after all others' time slices; one that slept comes back at once,
  // but late by the timer's slack.
  static void wait_since(steady::time_point begin) {
    static const bool alone = std::thread::hardware_concurrency() < 2;
    if (alone)
      std::this_thread::yield();
    else if (steady::now() - begin > spin_max)
      std::this_thread::sleep_for(slack);
  }

  // Returns the times of as many copies as there is time for, the fastest first. Goes on until `last` while they do not
  // agree, where there are to be more than make a result.
  std::vector<float> timed(bool in, std::size_t bytes, std::size_t n, steady::time_point end, steady::time_point last) {
    std::vector<float> all;
    for (;;) {
      all.push_back(std::max(once(in, bytes), 1.0f));
      if (all.size() < samples) continue;
      const auto now = steady::now();
      if (all.size() < n && now < end) continue;
      std::ranges::sort(all);
      if (n == samples || all.size() >= samples_max || now > last || judge(all).agreed) return all;
    }
  }

  void release() {
    if (host_) in_.deallocate_pinned(host_);
    if (there_) peer_->deallocate(lane_in, there_);
    if (memory_) in_.deallocate(lane_in, memory_);
    host_ = nullptr;
    there_ = memory_ = nullptr;
  }

  accelerator& in_;
  accelerator* const peer_;
  const int lane_out_;
  const steady::time_point give_up_;
  std::size_t bytes_ = 0;
  void* memory_ = nullptr;
  void* there_ = nullptr;  // in the peer
  std::byte* host_ = nullptr;
  bool idle_ = true;
};

}  // namespace

sample_verdict judge(std::span<const float> sorted) {
  if (sorted.empty()) return {};
  const auto within = [&](float factor) {
    return static_cast<std::size_t>(std::ranges::upper_bound(sorted, factor * sorted.front()) - sorted.begin());
  };
  return {sorted[(within(2) - 1) / 2], within(1.5f) >= samples};
}

link_speeds measure_links(accelerator& a, std::chrono::nanoseconds budget) {
  bench on(a, budget);
  link_speeds s;
  s.in = on.measure(true, budget * 2 / 5);
  s.out = on.measure(false, budget * 2 / 5);
  return s;
}

link_speeds measure_peers(accelerator& a, accelerator& other, std::chrono::nanoseconds budget) {
  link_speeds s;
  const bool connected = a.connect(other.facts()), back = other.connect(a.facts());
  if (!connected || !back) return s;
  s.in = bench(a, budget, &other).measure(true, budget * 2 / 5);
  s.out = bench(other, budget, &a).measure(true, budget * 2 / 5);
  return s;
}

}  // namespace troupe::devices
