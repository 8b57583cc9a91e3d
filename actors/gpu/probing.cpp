// What this file is for: what a device's link costs, looked at while the device has nothing to do.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A link that is believed to be slow gets no tasks, so no transfer would ever show that it is not: a calibration on a
// busy machine, or a minute of somebody else's traffic, would keep the device idle for good. So its thread makes a few
// small copies of its own when it has been idle for a while, and reports them like any others. They agree with what is
// believed: then the next look is later, and after some there are no more until tasks have run. Nobody waits for them:
// they begin when nothing is queued, and last for microseconds on links that were believed to be slow and are not.
#include <algorithm>
#include <array>

#include "actors/gpu/actor.hpp"

#include "actors/placement/placement.hpp"

namespace troupe::detail {

namespace {
// Small ones tell the latency, large ones the rate. Of each size the fastest of some counts.
constexpr std::size_t small_bytes = 256, large_bytes = 256 << 10;
constexpr int copies = 5;
// Within this factor what was measured agrees with what is believed.
constexpr float agreed = 1.5f;
// A copy that lasts longer is no probe any more.
constexpr double copy_max_ns = 1e9;
}  // namespace

float gpu_actor::timed_copy(bool in, void* there, std::byte* here, std::size_t bytes) {
  constexpr devices::strides line{0, 0, 0, 1};
  const std::array<index_t, rank_max> count{1, 1, 1, static_cast<index_t>(bytes)};
  const int lane = in ? lane_in : lane_out;
  const std::uint64_t begin = ticks();
  if (in)
    device_->copy_in(lane, {there, 0}, line, here, line, count, 1);
  else
    device_->copy_out(lane, here, line, {there, 0}, line, count, 1);
  const devices::ticket end = device_->record(lane, false);
  while (device_->completed(lane) < end)
    if (time_.ns_of(ticks() - begin) > copy_max_ns) {
      device_->give_up();
      throw error(errc::device_failed, options_.facts.name + ": a copy that was to measure its link did not end");
    }
  return static_cast<float>(time_.ns_of(ticks() - begin));
}

// Looks what the link costs, if it is time to; true if it has looked.
bool gpu_actor::probe_link() {
  if (options_.probes_link) probes_.note_ran(counters_.tasks.load(std::memory_order_relaxed), ticks());
  if (!may_probe() || !mail_.is_empty() || probes_.left(ticks()).count() != 0) return false;
  bool as_believed = true;
  const std::size_t most = memory_.bytes() / 8 < large_bytes ? small_bytes : large_bytes;
  void* const there = device_->allocate(lane_in, most);
  std::byte* const here = there ? device_->allocate_pinned(most) : nullptr;
  if (here) {
    device_->wait(lane_out, lane_in, device_->record(lane_in, false));
    for (const std::size_t bytes : {small_bytes, most})
      for (const bool in : {true, false}) {
        float fastest = 0;
        for (int i = 0; i < copies && mail_.queued() == 0; ++i) {
          const float ns = timed_copy(in, there, here, bytes);
          fastest = i == 0 ? ns : std::min(fastest, ns);
        }
        if (fastest <= 0) continue;
        const memory_space from = in ? host_space : options_.facts.space, to = in ? options_.facts.space : host_space;
        const auto link = placement_.learned_link(from, to).cost;
        const float believed = link.latency_ns + static_cast<float>(bytes) / link.bytes_per_ns;
        if (believed < agreed * fastest) continue;  // slower than believed: transfers tell
        as_believed = false;
        // The costs that many transfers would have shown, had there been any.
        for (int i = 0; i < copies; ++i) placement_.report_transfer(from, to, bytes, fastest);
      }
    device_->deallocate_pinned(here);
  }
  if (there) device_->deallocate(lane_in, there);
  for (const int lane : {lane_in, lane_out}) lanes_.note_used(lane);
  probes_.looked(as_believed, ticks());
  return true;
}

}  // namespace troupe::detail
