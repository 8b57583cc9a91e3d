// What this file is for: how fast the link to an accelerator is, measured on the accelerator itself.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <span>

#include "devices/accelerator.hpp"

namespace troupe::devices {

/// The speed of one direction: a copy takes the latency and its bytes over the rate. Zero: unknown.
struct link_speed {
  float latency_ns = 0;
  float bytes_per_ns = 0;  ///< GB/s
  bool agreed = true;  ///< its samples bear each other out; else the machine was busy, and it is the best that is known
  bool known() const { return bytes_per_ns > 0; }
};

/// The result of samples of one and the same copy. Processes that take the core away make a copy longer by more than
/// it takes, never shorter: so the fastest are the truth, if there are three of them within half as long again. `ns` is
/// the median of those within twice the fastest.
struct sample_verdict {
  float ns = 0;
  bool agreed = false;
};
sample_verdict judge(std::span<const float> sorted_ns);

struct link_speeds {
  link_speed in, out;  ///< to the device, and back
};

/// Times copies from and to pinned memory on lanes 0 and 1, within about `budget` in all, on a machine that is busy ten
/// times as long: the latency is that of small ones as `judge` sees them, the rate that of the fastest of each of
/// several sizes, larger and larger, the last of which counts. Copies whose times do not agree are made again as long
/// as there is time; if they never do, the result says so. What it took is given back. Blocks; throws what the device
/// throws, and device_failed if a copy does not end within forty times the budget. A direction is unknown if there was
/// no memory, or if no copy took clearly longer than a small one.
link_speeds measure_links(accelerator&, std::chrono::nanoseconds budget = std::chrono::milliseconds(50));

/// The same between two devices: `in` into the first one's memory, `out` into the other's. Unknown, at once, where they
/// cannot be connected; after it they are connected where they can be.
link_speeds measure_peers(accelerator&, accelerator& other,
                          std::chrono::nanoseconds budget = std::chrono::milliseconds(20));

}  // namespace troupe::devices
