// What this file is for: a stream of frames that arrives in any pieces, against one that is cut up at once.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstring>
#include <vector>

#include "net/tcp/frame_buffer.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace troupe::net::tcp;

namespace {

constexpr std::size_t frame_max = 200'000;

using frame = std::vector<std::byte>;

// Frames until the first that is not allowed; true: there is such a one.
bool cut_up(std::span<const std::byte> all, std::vector<frame>& to) {
  while (all.size() >= 4) {
    std::uint32_t length;
    std::memcpy(&length, all.data(), 4);
    if (length > frame_max) return true;
    if (all.size() - 4 < length) break;
    to.emplace_back(all.begin() + 4, all.begin() + 4 + length);
    all = all.subspan(4 + length);
  }
  return false;
}

}  // namespace

// The first byte says how long the stream's pieces are and how often the rest is repeated.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::size_t piece = 1 + (data[0] & 15) * (data[0] & 15) * 97, times = 1 + (data[0] >> 4) * 20;
  std::vector<std::byte> stream;
  for (std::size_t i = 0; i < times && stream.size() < 600'000; ++i)
    stream.insert(stream.end(), reinterpret_cast<const std::byte*>(data) + 1,
                  reinterpret_cast<const std::byte*>(data) + size);
  std::vector<frame> expected, got;
  const bool wrong = cut_up(stream, expected);

  frame_buffer buffer(frame_max);
  std::size_t arrived = 0;
  const bool decoded = fuzz::decodes([&] {
    while (arrived < stream.size()) {
      const auto room = buffer.room();
      fuzz::must(!room.empty());
      const std::size_t n = std::min({piece, room.size(), stream.size() - arrived});
      std::memcpy(room.data(), stream.data() + arrived, n);
      arrived += n;
      buffer.arrived(n);
      while (const auto f = buffer.next()) got.emplace_back(f->begin(), f->end());
      fuzz::must(buffer.memory_bytes() <= std::max<std::size_t>(64u << 10, 4 * arrived));
    }
  });
  fuzz::must(decoded != wrong);
  fuzz::must(got == expected);
  return 0;
}
