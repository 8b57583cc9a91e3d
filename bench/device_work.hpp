// The work on accelerators, the same for every contender: kernels as text, sizes, fresh data, proofs.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bench {

/// Lanes for kernels, as `troupe::device_use` has them by default.
inline constexpr int kernel_lanes = 4;

// --- small kernels --------------------------------------------------------------------------------------------------

inline constexpr std::size_t tiny_length = 64;        ///< elements of an array that a launch is measured with
inline constexpr std::size_t small_length = 1024;     ///< of the one that a chain updates
inline constexpr std::size_t frame_length = 131'072;  ///< of those that a stream passes through a kernel
inline constexpr std::uint32_t stir_factor = 3;

inline constexpr const char* stir_text = R"(
GPU_KERNEL void stir(GPU_INOUT(unsigned, a), const unsigned factor) {
  const long i = GPU_LO(a, 0) + GPU_GLOBAL_ID(0);
  if (i < GPU_HI(a, 0)) GPU_AT1(a, i) = GPU_AT1(a, i) * factor + (unsigned)i;
})";

/// Adds the first element of one array to that of another.
inline constexpr const char* look_text = R"(
GPU_KERNEL void look(GPU_IN(unsigned, a), GPU_INOUT(unsigned, b)) {
  if (GPU_GLOBAL_ID(0) == 0) GPU_AT1(b, 0) += GPU_AT1(a, 0);
})";

/// Throws `wrong_answer` unless `count` elements that began as 1 look as after `times` calls of stir.
void check_stirred(const std::uint32_t* elements, std::size_t count, std::size_t times);

// --- a stream of tiles ----------------------------------------------------------------------------------------------

inline constexpr const char* halve_text = R"(
GPU_KERNEL void halve(GPU_IN(double, a), GPU_OUT(double, b)) {
  const long i = GPU_LO(b, 0) + GPU_GLOBAL_ID(0);
  if (i < GPU_HI(b, 0)) GPU_AT1(b, i) = GPU_AT1(a, i) * 0.5 + 1.0;
})";

struct flow_problem {
  static constexpr std::size_t tile = 32768;  ///< elements
  std::size_t tiles = 0;
  std::vector<double> from, into;

  explicit flow_problem(std::size_t count) : tiles(count), from(count * tile), into(count * tile) {}
  /// New input in `data`, `from.size()` elements; what an older one gave is wrong now.
  void fill(double* data);
  /// Whether these are the results of elements `first` and on.
  [[nodiscard]] bool right(const double* results, std::size_t first, std::size_t count) const;

 private:
  double base_ = 0;
};

/// With this link and these launches, each stage of a tile takes the software GPU 1.05 ms: four kernels run at once.
inline constexpr double flow_link_gb_per_s = 0.25, flow_launch_us = 4200;

/// The speed of the software GPU's link while transfers are measured.
inline constexpr double transfer_link_gb_per_s = 1;

/// The software GPU with a link and launches of this speed, until this goes; `like_cuda`: copies from and to pageable
/// memory hold their caller. Nothing of it may be open at either end.
class sim_speed {
 public:
  sim_speed(double copy_gb_per_s, double launch_us, bool like_cuda = false);
  sim_speed(const sim_speed&) = delete;
  sim_speed& operator=(const sim_speed&) = delete;
  ~sim_speed();
};

/// Nanoseconds of each stage when it runs alone, by hand; nothing where there is no way to the device.
struct stage_times {
  double copy_in = 0, kernels = 0, copy_out = 0;
};
std::optional<stage_times> time_stages(const std::string& device, flow_problem&);

// --- a filter -------------------------------------------------------------------------------------------------------

inline constexpr const char* correlate_text = R"(
GPU_KERNEL void correlate(GPU_IN(float, source), GPU_IN(float, weights), GPU_OUT(float, result)) {
  const long x = GPU_LO(result, 1) + GPU_GLOBAL_ID(0), y = GPU_LO(result, 0) + GPU_GLOBAL_ID(1);
  if (y >= GPU_HI(result, 0) || x >= GPU_HI(result, 1)) return;
  const long height = GPU_SIZE(weights, 0), width = GPU_SIZE(weights, 1);
  float total = 0.0f;
  for (long v = 0; v < height; ++v)
    for (long u = 0; u < width; ++u)
      total += GPU_AT2(weights, v, u) * GPU_AT2(source, y + v - height / 2, x + u - width / 2);
  GPU_AT2(result, y, x) = total;
})";

/// An image of side x side, a filter of (2 radius + 1) squared; beyond the border the nearest pixel repeats.
struct filter_problem {
  static constexpr std::size_t side = 512, tile = 64, radius = 4, width = 2 * radius + 1;
  std::vector<float> image, weights, result;

  filter_problem();
  /// A new image in `pixels`; what an older one gave is wrong now.
  void fill(float* pixels);
  /// Throws `wrong_answer` unless these pixels are the last image, filtered.
  void check(const float* pixels) const;

 private:
  std::vector<float> base_;
  std::vector<double> expected_;  // of base_
  float scale_ = 1;
};

}  // namespace bench
