// What this file is for: finds what moves in a video: frames from ffmpeg as a stream, blurred in parallel, compared
// with a background that adapts, summed up in a picture.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <troupe/stream.hpp>
#include <troupe/troupe.hpp>

#include "connectors/process.hpp"
#include "examples/command_line.hpp"

namespace st = troupe::stream;

namespace {

using pixels = std::vector<std::uint8_t>;
using frame = st::recycled<pixels>;  // its memory is used again by a later one

struct extent {
  int width = 768, height = 576;
  std::size_t bytes() const { return static_cast<std::size_t>(width) * static_cast<std::size_t>(height); }
};

// The mean of 5 x 5 pixels, at the edges of those that there are: rows first, then columns.
void blur(const pixels& from, pixels& to, extent e) {
  const int w = e.width, h = e.height;
  std::vector<std::uint16_t> sums(e.bytes());
  for (int y = 0; y < h; ++y) {
    const std::uint8_t* const row = from.data() + static_cast<std::ptrdiff_t>(y) * w;
    for (int x = 0; x < w; ++x) {
      int sum = 0;
      const int lo = std::max(0, x - 2), hi = std::min(w - 1, x + 2);
      for (int i = lo; i <= hi; ++i) sum += row[i];
      sums[static_cast<std::size_t>(y * w + x)] = static_cast<std::uint16_t>(sum / (hi - lo + 1));
    }
  }
  to.resize(e.bytes());
  for (int y = 0; y < h; ++y) {
    const int lo = std::max(0, y - 2), hi = std::min(h - 1, y + 2);
    for (int x = 0; x < w; ++x) {
      int sum = 0;
      for (int i = lo; i <= hi; ++i) sum += sums[static_cast<std::size_t>(i * w + x)];
      to[static_cast<std::size_t>(y * w + x)] = static_cast<std::uint8_t>(sum / (hi - lo + 1));
    }
  }
}

// What has been there so far, in sixteenths: each pixel moves a sixteenth of the way to the newest frame. A pixel that
// is far from it moves.
class background {
 public:
  // Replaces the frame by 1 where something moves and 0 elsewhere; returns how many pixels do.
  std::uint64_t subtract(pixels& image) {
    if (mean_.empty())
      for (const std::uint8_t p : image) mean_.push_back(static_cast<std::int16_t>(p * 16));
    std::uint64_t moving = 0;
    for (std::size_t i = 0; i < image.size(); ++i) {
      const int is = image[i] * 16, was = mean_[i];
      const bool moves = std::abs(is - was) > 20 * 16;
      mean_[i] = static_cast<std::int16_t>(was + (is - was) / 16);
      image[i] = moves ? 1 : 0;
      moving += moves ? 1 : 0;
    }
    return moving;
  }

 private:
  std::vector<std::int16_t> mean_;
};

// How often each pixel has moved.
struct heat {
  std::vector<std::uint32_t> times;
  std::uint64_t frames = 0, moving = 0;
  void add(const pixels& mask, std::uint64_t count) {
    times.resize(mask.size());
    for (std::size_t i = 0; i < mask.size(); ++i) times[i] += mask[i];
    ++frames;
    moving += count;
  }
  bool operator==(const heat&) const = default;
};

struct masked {
  frame image;
  std::uint64_t moving;
};

std::vector<std::string> decoder(const std::string& file, extent e) {
  return {"ffmpeg", "-nostdin", "-loglevel", "error",
          "-i",     file,       "-vf",       "scale=" + std::to_string(e.width) + ":" + std::to_string(e.height),
          "-f",     "rawvideo", "-pix_fmt",  "gray",
          "pipe:1"};
}

heat by_stream(troupe::runtime& rt, const std::string& file, extent e, int lanes) {
  heat sum;
  st::recycler<pixels> memory;
  auto p = st::from("ffmpeg", troupe::connectors::process_blocks(decoder(file, e), e.bytes())) |
           st::map("blur",
                   [memory, e](const frame& from) mutable {
                     frame to = memory.take();
                     blur(*from, *to, e);
                     return to;
                   },
                   {.parallel = lanes, .edge = {.items = 8}}) |
           st::scan("motion", background(),
                    [](background& b, frame f) {
                      const std::uint64_t moving = b.subtract(*f);
                      return masked{std::move(f), moving};
                    }) |
           st::sink("sum", [&](const masked& m) { sum.add(*m.image, m.moving); });
  auto r = p.start(rt, {.name = "video"});
  r.wait();
  std::printf("%s", r.report().text().c_str());
  return sum;
}

// The same in one loop, to compare with.
heat by_loop(const std::string& file, extent e) {
  std::string command;
  for (const std::string& word : decoder(file, e)) {
    command += " '";
    for (const char c : word) c == '\'' ? command += "'\\''" : command += c;
    command += "'";
  }
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen(command.c_str(), "r"), &::pclose);
  if (!pipe) throw std::runtime_error("ffmpeg cannot be started");
  heat sum;
  background b;
  pixels raw(e.bytes()), smooth;
  while (std::fread(raw.data(), 1, raw.size(), pipe.get()) == raw.size()) {
    blur(raw, smooth, e);
    const std::uint64_t moving = b.subtract(smooth);
    sum.add(smooth, moving);
  }
  return sum;
}

// Writes a picture, brighter where more has moved.
void write_picture(const heat& h, extent e, const std::string& path) {
  const std::uint32_t most =
      std::max<std::uint32_t>(1, h.times.empty() ? 1 : *std::max_element(h.times.begin(), h.times.end()));
  std::ofstream out(path, std::ios::binary);
  out << "P5\n" << e.width << ' ' << e.height << "\n255\n";
  for (const std::uint32_t t : h.times) out.put(static_cast<char>(t * 255ULL / most));
  if (!out.flush()) throw std::runtime_error("'" + path + "' cannot be written");
}

constexpr const char* usage =
    "usage: troupe-video [FILE] [--size WIDTHxHEIGHT] [--lanes N] [--out PICTURE.pgm] [--check]\n"
    "  FILE    what ffmpeg can read; Debian's opencv-doc has the video that is taken otherwise\n"
    "  --size  to which frames are scaled, 16x16 to 8192x8192; 768x576 unless given\n"
    "  --lanes frames that are blurred at the same time, 1 to 64; 2 unless given\n"
    "  --out   where the picture of what has moved is written\n"
    "  --check does it again in one loop and compares";

}  // namespace

int main(int count, char** arguments) try {
  if (examples::explains_itself(count, arguments, "troupe-video", usage)) return 0;
  std::string file = "/usr/share/doc/opencv-doc/examples/data/vtest.avi", picture;
  extent size;
  int lanes = 2;
  bool checks = false;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = arguments[i];
    const auto value = [&]() -> std::string_view {
      if (i + 1 >= count) throw std::invalid_argument(std::string(word) + " needs a value; " + usage);
      return arguments[++i];
    };
    if (word == "--check") {
      checks = true;
    } else if (word == "--out") {
      picture = value();
    } else if (word == "--lanes") {
      lanes = examples::number(value(), 1, 64, usage);
    } else if (word == "--size") {
      const std::string_view v = value();
      const std::size_t x = v.find('x');
      size = {examples::number(v.substr(0, x), 16, 8192, usage),
              examples::number(x == v.npos ? "" : v.substr(x + 1), 16, 8192, usage)};
    } else if (word.starts_with('-')) {
      throw std::invalid_argument("'" + std::string(word) + "' is not understood; " + usage);
    } else {
      file = word;
    }
  }

  troupe::runtime rt;
  const auto begin = std::chrono::steady_clock::now();
  const heat sum = by_stream(rt, file, size, lanes);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("%llu frames in %.2f s; %.2f %% of the pixels move\n", static_cast<unsigned long long>(sum.frames),
              seconds,
              sum.frames == 0 ? 0.0
                              : 100.0 * static_cast<double>(sum.moving) /
                                    (static_cast<double>(sum.frames) * static_cast<double>(size.bytes())));
  if (!picture.empty()) write_picture(sum, size, picture);
  if (checks) {
    const bool same = by_loop(file, size) == sum;
    std::printf(same ? "the same as in one loop\n" : "NOT the same as in one loop\n");
    if (!same) return 1;
  }
  return 0;
} catch (...) {
  return examples::complain("troupe-video");
}
