// What this file is for: whether chunks are compressed: only while that was measured to be faster than sending them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace troupe::net::tcp {

/// Decides by numbers alone. What is sent teaches the pace of the link; now and then a small sample teaches what
/// compression would do to what is sent now. Where samples do not pay they become rarer.
class packing_choice {
 public:
  enum class way { plain, sample_first, packed };

  /// How the next chunk goes.
  way next() {
    if (packs_) return way::packed;
    if (link_ <= 0 || ++since_sample_ < sample_every_) return way::plain;
    since_sample_ = 0;
    return way::sample_first;
  }
  /// So many bytes of the wire kept it busy for so long, waiting for room included.
  void wrote(std::size_t bytes, double seconds) {
    bytes_ += bytes;
    seconds_ += seconds;
    // Bytes that fit into the socket's buffer say nothing of the link behind it.
    if (bytes_ < window_bytes) return;
    const double now = static_cast<double>(bytes_) / std::max(seconds_, 1e-9);
    link_ = link_ <= 0 ? now : (link_ + now) / 2;
    bytes_ = 0;
    seconds_ = 0;
  }
  /// Notes what compressing did, to a sample or a chunk; `stored` at least `raw`: it did not get smaller.
  void packed(std::size_t raw, std::size_t stored, double seconds) {
    const double each = 1 / static_cast<double>(raw);
    const double with = seconds * each + static_cast<double>(std::min(stored, raw)) * each / link_;
    const bool pays = stored < raw && with < worth_it / link_;
    if (pays) {
      sample_every_ = sample_first_every;
    } else if (!packs_) {
      sample_every_ = std::min(2 * sample_every_, sample_rarely_every);
    }
    packs_ = pays;
  }

  /// Bytes per second; 0 while it is not known.
  double link() const { return link_; }

 private:
  static constexpr std::size_t window_bytes = 8u << 20;
  static constexpr double worth_it = 0.8;  ///< of the time without
  static constexpr unsigned sample_first_every = 4, sample_rarely_every = 256;

  double link_ = 0, seconds_ = 0;
  std::size_t bytes_ = 0;
  unsigned since_sample_ = 0, sample_every_ = sample_first_every;
  bool packs_ = false;
};

}  // namespace troupe::net::tcp
