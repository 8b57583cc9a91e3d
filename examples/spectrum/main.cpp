// What this file is for: the spectrum of sound as it comes, as a picture: samples in overlapping rows, batches of rows
// transformed on devices or cores, powers drawn.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <fftw3.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <troupe/stream.hpp>
#include <troupe/troupe.hpp>

#include "connectors/audio.hpp"
#include "examples/command_line.hpp"
#include "transform.hpp"

namespace st = troupe::stream;
namespace connect = troupe::connectors;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t hop = spectrum::length / 2;  // from one row to the next

struct choices {
  std::string file = "/usr/share/sounds/alsa/Front_Center.wav", picture;
  std::vector<std::string> devices;
  bool is_raw = false, checks = false;
  connect::sound raw{};
};

using row = std::vector<float>;
using frame = st::frame<float, 2>;
struct loaded {
  frame samples;
  std::size_t rows;
};
struct transformed {
  frame powers;
  std::size_t rows;
};

// Rows of `length` samples that begin `hop` after each other, of the first channel, each without its mean: what a
// sensor measures may lie around any number, which would be far stronger than all that changes. What is left at the end
// is no row.
class rows_of {
 public:
  explicit rows_of(unsigned channels) : channels_(channels) {}
  std::vector<row> operator()(const connect::samples& block) {
    std::vector<row> rows;
    for (std::size_t i = 0; i < block->size(); i += channels_) {
      waiting_.push_back((*block)[i]);
      if (waiting_.size() < spectrum::length) continue;
      const double mean = std::accumulate(waiting_.begin(), waiting_.end(), 0.0) / spectrum::length;
      rows.push_back(waiting_);
      for (float& x : rows.back()) x -= static_cast<float>(mean);
      waiting_.erase(waiting_.begin(), waiting_.begin() + hop);
    }
    return rows;
  }

 private:
  const unsigned channels_;
  row waiting_;
};

st::source<connect::samples> source_of(const choices& c) {
  if (c.is_raw) return connect::raw_samples(0, c.raw, 4096);
  return connect::wav_samples(c.file, 4096);
}

// The power of each row. `keep`: the rows, for a comparison.
std::vector<row> by_stream(troupe::runtime& rt, const choices& c, unsigned channels, std::vector<row>* keep) {
  std::vector<row> all;
  const auto table = rt.adopt(spectrum::table());
  const auto in = st::frames<float>(rt, {spectrum::rows_max, spectrum::length}, 16, "samples");
  const auto out = st::frames<float>(rt, {spectrum::rows_max, spectrum::bins}, 16, "powers");
  using troupe::device_kind, troupe::scope;
  const scope where = c.devices.empty()
                          ? scope::cpu()
                          : scope::gpu() | scope::kind(device_kind::opencl) | scope::kind(device_kind::sim);
  // clang-format off
  auto p = st::from("samples", source_of(c))
         | st::flat_map("rows", rows_of(channels))
         | st::batch("batch", {.items = spectrum::rows_max, .delay = 20ms})
         | st::map("load", [&, in](std::vector<row> rows) {
             frame f = in.take();
             auto to = f->write();
             for (std::size_t y = 0; y < spectrum::rows_max; ++y)
               for (std::size_t x = 0; x < spectrum::length; ++x)
                 to(static_cast<troupe::index_t>(y), static_cast<troupe::index_t>(x)) = y < rows.size() ? rows[y][x] : 0;
             to.close();
             const std::size_t count = rows.size();
             if (keep) std::move(rows.begin(), rows.end(), std::back_inserter(*keep));
             return loaded{std::move(f), count};
           })
         | st::tasks("transform", [=](st::spawner& on, loaded& l) {
             transformed t{out.take(), l.rows};
             on.spawn(spectrum::power, read(*l.samples), read(table), write(*t.powers));
             return t;
           }, {.where = where, .in_flight = 3})
         | st::sink("draw", [&](const transformed& t) {
             const auto from = t.powers->read();
             for (std::size_t y = 0; y < t.rows; ++y) {
               const float* const first = &from(static_cast<troupe::index_t>(y), 0);
               all.emplace_back(first, first + spectrum::bins);
             }
           });
  // clang-format on
  auto r = p.start(rt, {.name = "spectrum"});
  r.wait();
  std::printf("%s", r.report().text().c_str());
  return all;
}

// The largest difference from what FFTW finds, as a part of the largest power.
double difference(const std::vector<row>& rows, const std::vector<row>& powers) {
  if (rows.size() != powers.size()) throw std::runtime_error("there are not as many spectra as rows");
  const auto table = spectrum::table();
  const std::unique_ptr<double[], void (*)(void*)> in(fftw_alloc_real(spectrum::length), &fftw_free);
  const std::unique_ptr<fftw_complex[], void (*)(void*)> out(fftw_alloc_complex(spectrum::bins + 1), &fftw_free);
  const fftw_plan plan = fftw_plan_dft_r2c_1d(spectrum::length, in.get(), out.get(), FFTW_ESTIMATE);
  double most = 0, off = 0;
  for (std::size_t y = 0; y < rows.size(); ++y) {
    for (std::size_t i = 0; i < spectrum::length; ++i) in[i] = static_cast<double>(rows[y][i] * table[i]);
    fftw_execute(plan);
    for (std::size_t k = 0; k < spectrum::bins; ++k) {
      const double wanted = out[k][0] * out[k][0] + out[k][1] * out[k][1];
      most = std::max(most, wanted);
      off = std::max(off, std::abs(wanted - static_cast<double>(powers[y][k])));
    }
  }
  fftw_destroy_plan(plan);
  return most == 0 ? off : off / most;
}

// Time goes to the right, frequency up; 80 dB below the strongest is black.
void write_picture(const std::vector<row>& powers, const std::string& path) {
  float most = 1e-30F;
  for (const row& r : powers) most = std::max(most, *std::max_element(r.begin(), r.end()));
  std::ofstream to(path, std::ios::binary);
  to << "P5\n" << powers.size() << ' ' << spectrum::bins << "\n255\n";
  for (std::size_t k = spectrum::bins; k-- != 0;)
    for (const row& r : powers) {
      const float db = 10 * std::log10(std::max(r[k] / most, 1e-8F));
      to.put(static_cast<char>(static_cast<unsigned char>((db + 80) / 80 * 255)));
    }
  if (!to.flush()) throw std::runtime_error("'" + path + "' cannot be written");
}

constexpr const char* usage =
    "usage: troupe-spectrum [FILE.wav] [--raw FORMAT RATE] [--devices LIST] [--out PICTURE.pgm] [--check]\n"
    "  FILE      a WAV file; Debian's alsa-utils has the one that is taken otherwise\n"
    "  --raw     samples without a header from standard input: u8, s16, u16, s24, s32 or f32, and how many a second\n"
    "  --devices accelerators that transform: sim, opencl, cuda, hip, gpu, or names such as sim:0; else the cores do\n"
    "  --out     where the picture of the spectrum is written\n"
    "  --check   compares with FFTW";

connect::sample_format format_of(std::string_view word) {
  constexpr std::pair<std::string_view, connect::sample_format> all[] = {
      {"u8", connect::sample_format::u8},   {"s16", connect::sample_format::s16}, {"u16", connect::sample_format::u16},
      {"s24", connect::sample_format::s24}, {"s32", connect::sample_format::s32}, {"f32", connect::sample_format::f32}};
  for (const auto& [name, format] : all)
    if (name == word) return format;
  throw std::invalid_argument("'" + std::string(word) + "' is no format of samples; " + usage);
}

choices choices_of(int count, char** arguments) {
  choices c;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = arguments[i];
    const auto value = [&]() -> std::string_view {
      if (i + 1 >= count) throw std::invalid_argument(std::string(word) + " needs a value; " + usage);
      return arguments[++i];
    };
    if (word == "--check") {
      c.checks = true;
    } else if (word == "--out") {
      c.picture = value();
    } else if (word == "--devices") {
      c.devices = examples::device_names(word, value());
    } else if (word == "--raw") {
      c.is_raw = true;
      c.raw.format = format_of(value());
      const std::string_view rate = value();
      const auto [end, fault] = std::from_chars(rate.data(), rate.data() + rate.size(), c.raw.rate);
      if (fault != std::errc() || end != rate.data() + rate.size() || c.raw.rate == 0)
        throw std::invalid_argument("'" + std::string(rate) + "' is no rate; " + usage);
    } else if (word.starts_with('-')) {
      throw std::invalid_argument("'" + std::string(word) + "' is not understood; " + usage);
    } else {
      c.file = word;
    }
  }
  return c;
}

}  // namespace

int main(int count, char** arguments) try {
  if (examples::explains_itself(count, arguments, "troupe-spectrum", usage)) return 0;
  const choices c = choices_of(count, arguments);
  const connect::sound is = c.is_raw ? c.raw : connect::wav_format(c.file);
  troupe::options o;
  for (const std::string& d : c.devices) o.devices.push_back({d});
  troupe::runtime rt(o);
  std::vector<row> rows;
  const auto powers = by_stream(rt, c, is.channels, c.checks ? &rows : nullptr);
  if (powers.empty()) throw std::runtime_error("fewer samples than one spectrum needs");

  row mean(spectrum::bins);
  for (const row& r : powers)
    for (std::size_t k = 0; k < spectrum::bins; ++k) mean[k] += r[k];
  const auto loudest = std::max_element(mean.begin() + 1, mean.end()) - mean.begin();
  std::printf("%zu spectra of %d samples at %u Hz; most power at %.1f Hz\n", powers.size(), spectrum::length, is.rate,
              static_cast<double>(loudest) * is.rate / spectrum::length);
  if (!c.picture.empty()) write_picture(powers, c.picture);
  if (!c.checks) return 0;
  const double off = difference(rows, powers);
  const bool ok = off < 1e-5;
  std::printf("%s FFTW: the largest difference is %.1e of the largest power\n", ok ? "the same as" : "NOT the same as",
              off);
  return ok ? 0 : 1;
} catch (...) {
  return examples::complain("troupe-spectrum");
}
