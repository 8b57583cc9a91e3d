// What this file is for: the spectrum of an electrocardiogram, against the beats that are counted in it without one.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "program.hpp"
#include "tests/support/scratch_folder.hpp"

namespace {

using testing::HasSubstr;
using troupe_test::bytes_of;
using troupe_test::run_program;

constexpr int rate = 360, row_length = 1024, hop = row_length / 2, bins = row_length / 2;

// Where an electrocardiogram beats, found without any spectrum: the slope is steep there, and beats are 0.3 s apart at
// least. In samples.
std::vector<int> beats_in(const std::vector<double>& samples) {
  constexpr int lag = 8, around = rate / 20;
  const auto count = static_cast<int>(samples.size());
  std::vector<double> sums{0};  // of the squared slope
  for (int i = 0; i < count; ++i) {
    const double slope =
        i < lag ? 0 : samples[static_cast<std::size_t>(i)] - samples[static_cast<std::size_t>(i - lag)];
    sums.push_back(sums.back() + slope * slope);
  }
  const auto steepness = [&](int i) {
    const auto at = [&](int k) { return sums[static_cast<std::size_t>(std::clamp(k, 0, count))]; };
    return at(i + around) - at(i - around);
  };
  const double usual = 2 * around * sums.back() / count;
  std::vector<int> beats;
  for (int i = 0; i < count; ++i) {
    if (steepness(i) <= usual) continue;
    int top = i;
    for (; i < count && steepness(i) > usual; ++i)
      if (steepness(i) > steepness(top)) top = i;
    if (beats.empty() || top - beats.back() > 3 * rate / 10) beats.push_back(top);
  }
  return beats;
}

// The powers that a picture shows, [row][bin], as parts of the largest.
std::vector<std::vector<double>> powers_in(const std::string& picture, std::size_t rows) {
  const std::string head = "P5\n" + std::to_string(rows) + " " + std::to_string(bins) + "\n255\n";
  if (!picture.starts_with(head) || picture.size() != head.size() + rows * bins) return {};
  std::vector<std::vector<double>> all(rows, std::vector<double>(bins));
  for (std::size_t y = 0; y < rows; ++y)
    for (std::size_t k = 0; k < bins; ++k) {
      const auto grey = static_cast<unsigned char>(picture[head.size() + (bins - 1 - k) * rows + y]);
      all[y][k] = std::pow(10, (grey / 255.0 * 80 - 80) / 10);
    }
  return all;
}

// The frequency at which the samples have most power in all rows, without what is constant in each: by the definition.
double loudest_in(const std::vector<double>& samples) {
  const double pi = 3.14159265358979;
  constexpr int highest = 40;  // 14 Hz; a heart has little above
  std::vector<double> power(highest);
  for (std::size_t from = 0; from + row_length <= samples.size(); from += hop) {
    double mean = 0;
    for (std::size_t i = 0; i < row_length; ++i) mean += samples[from + i] / row_length;
    for (int k = 1; k < highest; ++k) {
      double re = 0, im = 0;
      for (int i = 0; i < row_length; ++i) {
        const double window = 0.5 - 0.5 * std::cos(2 * pi * i / row_length);
        const double x = (samples[from + static_cast<std::size_t>(i)] - mean) * window;
        re += x * std::cos(2 * pi * (k * i % row_length) / row_length);
        im += x * std::sin(2 * pi * (k * i % row_length) / row_length);
      }
      power[static_cast<std::size_t>(k)] += re * re + im * im;
    }
  }
  return static_cast<double>(std::max_element(power.begin(), power.end()) - power.begin()) * rate / row_length;
}

TEST(spectrum_of_a_heart, has_its_power_at_multiples_of_the_rate_at_which_it_beats) {
  if (!troupe_test::has_program("troupe-spectrum")) GTEST_SKIP() << "troupe-spectrum was not built: no FFTW";
  // Five minutes of an electrocardiogram, as NumPy keeps arrays: 108,000 numbers of 16 bits behind a header, packed.
  const char* named = std::getenv("TROUPE_ECG");
  const std::string packed = named ? named : "/usr/lib/python3/dist-packages/scipy/misc/ecg.dat";
  if (!std::ifstream(packed))
    GTEST_SKIP() << packed << " is not there; docs/dependencies.md says where it comes from (python3-scipy)";
  const test::scratch_folder folder;
  const std::string raw = folder.path() / "ecg.raw", picture = folder.path() / "picture.pgm";
  if (std::system(("python3 -c \"import sys, zipfile; b = zipfile.ZipFile(sys.argv[1]).read('ecg.npy'); "
                   "sys.stdout.buffer.write(b[10 + int.from_bytes(b[8:10], 'little'):])\" '" +
                   packed + "' > '" + raw + "'")
                      .c_str()) != 0)
    GTEST_SKIP() << "python3, which is to unpack it, does not";
  std::vector<double> samples;
  {
    const std::string bytes = bytes_of(raw);
    for (std::size_t i = 0; i + 1 < bytes.size(); i += 2)
      samples.push_back(static_cast<unsigned char>(bytes[i]) + 256 * static_cast<unsigned char>(bytes[i + 1]));
  }
  ASSERT_EQ(samples.size(), 108'000u);
  constexpr std::size_t rows = (108'000 - row_length) / hop + 1;
  const std::vector<int> beats = beats_in(samples);
  EXPECT_GT(beats.size(), 400u);  // 80 a minute
  EXPECT_LT(beats.size(), 600u);
  std::ostringstream loudest;
  loudest << std::fixed << std::setprecision(1) << loudest_in(samples);

  for (const char* device : {"", "sim"}) {
    std::vector<std::string> words{"--raw", "u16", std::to_string(rate), "--out", picture, "--check"};
    if (*device) words.insert(words.end(), {"--devices", device});
    const auto done = run_program("troupe-spectrum", words, raw);
    EXPECT_EQ(done.exit_code, 0) << done.out << done.err;
    EXPECT_THAT(done.out, HasSubstr("\nthe same as FFTW"));
    EXPECT_THAT(done.out, HasSubstr(std::to_string(rows) + " spectra of 1024 samples at 360 Hz; most power at " +
                                    loudest.str() + " Hz"));
    const auto powers = powers_in(bytes_of(picture), rows);
    ASSERT_EQ(powers.size(), rows);
    // Samples lie around 991. That is no part of a beat; where it is drawn, all else is nothing beside it.
    double slow = 0, all = 0;
    for (const auto& row : powers) {
      slow += row[0] + row[1];
      all = std::accumulate(row.begin(), row.end(), all);
    }
    EXPECT_LT(slow, all / 2);
    // What beats f times a second has its power at 2 f, 3 f, 4 f rather than between. (At f itself there is breathing,
    // too.) The rate of each three seconds is that of the beats in them.
    double at_harmonics = 0, between = 0;
    int judged = 0, right = 0;
    for (std::size_t y = 0; y < rows; ++y) {
      const int from = static_cast<int>(y) * hop;
      const auto first = std::lower_bound(beats.begin(), beats.end(), from);
      const auto end = std::lower_bound(beats.begin(), beats.end(), from + row_length);
      if (end - first < 3) continue;
      const double f = static_cast<double>(end - first - 1) * rate / (*(end - 1) - *first);
      const auto power_at = [&](double times) {
        return powers[y][static_cast<std::size_t>(std::lround(times * f * row_length / rate))];
      };
      const double on = power_at(2) + power_at(3) + power_at(4), off = power_at(2.5) + power_at(3.5) + power_at(4.5);
      at_harmonics += on;
      between += off;
      ++judged;
      if (on > off) ++right;
    }
    EXPECT_GT(judged, 190);
    EXPECT_GT(right, judged * 85 / 100);
    EXPECT_GT(at_harmonics, 2 * between);
  }
}

}  // namespace
