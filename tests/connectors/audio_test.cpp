// What this file is for: samples out of WAV files, of all formats, and out of pipes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <troupe/troupe.hpp>

#include "connectors/audio.hpp"
#include "tests/support/scratch_folder.hpp"

namespace {

namespace st = troupe::stream;
namespace connect = troupe::connectors;
using connect::sample_format;

struct heard {
  std::vector<float> all;
  std::vector<std::size_t> blocks;
};
heard all_of(troupe::runtime& rt, st::source<connect::samples> s) {
  heard h;
  auto p = st::from("sound", std::move(s)) | st::sink("keep", [&](const connect::samples& b) {
             h.all.insert(h.all.end(), b->begin(), b->end());
             h.blocks.push_back(b->size());
           });
  p.start(rt).wait();
  return h;
}

std::string number(std::uint64_t n, std::size_t bytes) {
  std::string s;
  for (std::size_t i = 0; i < bytes; ++i) s += static_cast<char>(n >> (8 * i));
  return s;
}
std::string wav(unsigned coding, unsigned channels, unsigned bits, const std::string& data,
                const std::string& before = "", std::uint64_t promised = ~std::uint64_t{0}) {
  const std::string format = number(coding, 2) + number(channels, 2) + number(8000, 4) +
                             number(8000 * channels * bits / 8, 4) + number(channels * bits / 8, 2) + number(bits, 2);
  const std::string rest = "WAVE" + before + "fmt " + number(format.size(), 4) + format + "data" +
                           number(promised == ~std::uint64_t{0} ? data.size() : promised, 4) + data;
  return "RIFF" + number(rest.size(), 4) + rest;
}
std::string path_with(const test::scratch_folder& f, const std::string& bytes) {
  const std::string path = f.path() / "sound.wav";
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

TEST(audio, wav_files_of_each_format_give_the_samples_that_were_written) {
  troupe::runtime rt(troupe::options{.threads = 1});
  const test::scratch_folder folder;
  const auto heard_of = [&](unsigned coding, unsigned bits, const std::string& data) {
    return all_of(rt, connect::wav_samples(path_with(folder, wav(coding, 1, bits, data)), 100)).all;
  };
  EXPECT_EQ(heard_of(1, 8, number(0xff8000, 3)), (std::vector<float>{-1.0F, 0.0F, 127.0F / 128}));
  EXPECT_EQ(heard_of(1, 16, number(0x7fff8000, 4)), (std::vector<float>{-1.0F, 32767.0F / 32768}));
  EXPECT_EQ(heard_of(1, 24, number(0x400000800000, 6)), (std::vector<float>{-1.0F, 0.5F}));
  EXPECT_EQ(heard_of(1, 32, number(0xc000000080000000, 8)), (std::vector<float>{-1.0F, -0.5F}));
  std::string floats(8, '\0');
  const float values[] = {0.25F, -3.5F};
  std::memcpy(floats.data(), values, 8);
  EXPECT_EQ(heard_of(3, 32, floats), (std::vector<float>{0.25F, -3.5F}));
}

TEST(audio, blocks_have_the_size_that_was_asked_for_and_reading_can_begin_anywhere) {
  troupe::runtime rt(troupe::options{.threads = 1});
  const test::scratch_folder folder;
  std::string data;
  for (unsigned i = 0; i < 1000; ++i) data += number(i, 2) + number(1000 + i, 2);  // two channels
  // Parts that are not known are passed over, those of an odd number of bytes too.
  const std::string path = path_with(folder, wav(1, 2, 16, data, "LIST" + number(3, 4) + "abc" + '\0'));
  const connect::sound is = connect::wav_format(path);
  EXPECT_EQ(is.rate, 8000u);
  EXPECT_EQ(is.channels, 2u);
  EXPECT_EQ(is.format, sample_format::s16);
  const heard h = all_of(rt, connect::wav_samples(path, 300));
  EXPECT_EQ(h.blocks, (std::vector<std::size_t>{600, 600, 600, 200}));
  for (std::size_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(h.all[2 * i], static_cast<float>(i) / 32768);
    ASSERT_EQ(h.all[2 * i + 1], static_cast<float>(1000 + i) / 32768);
  }
  for (const std::uint64_t from : {1U, 299U, 999U, 1000U, 5000U}) {
    const heard later = all_of(rt, connect::wav_samples(path, 300, from));
    const std::size_t first = 2 * std::min<std::uint64_t>(from, 1000);
    EXPECT_EQ(later.all, std::vector<float>(h.all.begin() + static_cast<std::ptrdiff_t>(first), h.all.end())) << from;
  }
}

TEST(audio, a_file_that_ends_early_gives_what_it_has_and_fails) {
  troupe::runtime rt(troupe::options{.threads = 1});
  const test::scratch_folder folder;
  const std::string path = path_with(folder, wav(1, 1, 16, number(0x0003'0002'0001, 6) + "x", "", 20));
  std::vector<float> got;
  auto p = st::from("sound", connect::wav_samples(path, 2)) |
           st::sink("keep", [&](const connect::samples& b) { got.insert(got.end(), b->begin(), b->end()); });
  auto r = p.start(rt);
  try {
    r.wait();
    ADD_FAILURE();
  } catch (const st::stage_failed& e) {
    EXPECT_EQ(e.stage(), "sound");
    EXPECT_NE(std::string(e.what()).find("13 bytes before"), std::string::npos) << e.what();
  }
  EXPECT_EQ(got, (std::vector<float>{1.0F / 32768, 2.0F / 32768, 3.0F / 32768}));
}

TEST(audio, samples_that_end_in_the_middle_of_one_by_their_own_count_fail) {
  troupe::runtime rt(troupe::options{.threads = 1});
  const test::scratch_folder folder;
  std::vector<float> got;
  auto p = st::from("sound", connect::wav_samples(path_with(folder, wav(1, 1, 16, number(0x0002'0001, 4) + "x")), 10)) |
           st::sink("keep", [&](const connect::samples& b) { got.insert(got.end(), b->begin(), b->end()); });
  auto r = p.start(rt);
  EXPECT_THROW(r.wait(), st::stage_failed);
  EXPECT_EQ(got, (std::vector<float>{1.0F / 32768, 2.0F / 32768}));
}

TEST(audio, what_is_no_sound_is_refused_with_its_name) {
  const test::scratch_folder folder;
  const auto code_of = [&](const std::string& bytes) {
    try {
      static_cast<void>(connect::wav_samples(path_with(folder, bytes), 10));
    } catch (const troupe::error& e) {
      EXPECT_NE(std::string(e.what()).find("sound.wav"), std::string::npos) << e.what();
      return e.code();
    }
    return troupe::errc();
  };
  EXPECT_EQ(code_of(""), troupe::errc::io_failed);
  EXPECT_EQ(code_of("RIFF"), troupe::errc::io_failed);
  EXPECT_EQ(code_of("RIFF0000AVI "), troupe::errc::bad_argument);
  EXPECT_EQ(code_of(wav(1, 1, 16, "").substr(0, 30)), troupe::errc::io_failed);
  EXPECT_EQ(code_of(wav(85, 1, 16, "abcd")), troupe::errc::bad_argument);
  EXPECT_EQ(code_of(wav(1, 0, 16, "abcd")), troupe::errc::bad_argument);
  EXPECT_EQ(code_of(wav(1, 1, 12, "abcd")), troupe::errc::bad_argument);
  EXPECT_EQ(code_of("RIFF0000WAVEdata0000"), troupe::errc::bad_argument);
  EXPECT_THROW(static_cast<void>(connect::wav_format("/no/such/sound")), troupe::error);
  EXPECT_THROW(static_cast<void>(connect::wav_samples(path_with(folder, wav(1, 1, 16, "ab")), 0)), troupe::error);
  EXPECT_THROW(static_cast<void>(connect::raw_samples(0, {.channels = 0}, 10)), troupe::error);
}

TEST(audio, raw_samples_come_as_they_are_written_and_half_a_sample_fails) {
  troupe::runtime rt(troupe::options{.threads = 1});
  for (const bool has_half : {false, true}) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    std::thread writer([&] {
      std::string bytes;
      for (unsigned i = 0; i < 50'000; ++i) bytes += number(i, 2);
      if (has_half) bytes += 'x';
      for (std::size_t at = 0; at < bytes.size();) {  // pieces that end anywhere
        const ssize_t n = ::write(ends[1], bytes.data() + at, std::min<std::size_t>(777, bytes.size() - at));
        if (n <= 0) break;
        at += static_cast<std::size_t>(n);
      }
      ::close(ends[1]);
    });
    std::vector<float> got;
    auto p = st::from("sound", connect::raw_samples(ends[0], {.format = sample_format::u16}, 1024)) |
             st::sink("keep", [&](const connect::samples& b) { got.insert(got.end(), b->begin(), b->end()); });
    auto r = p.start(rt);
    if (has_half)
      EXPECT_THROW(r.wait(), st::stage_failed);
    else
      r.wait();
    writer.join();
    ::close(ends[0]);
    ASSERT_EQ(got.size(), 50'000u);
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], (static_cast<float>(i) - 32768) / 32768);
  }
}

TEST(audio, what_ffmpeg_writes_is_understood) {
  if (std::system("ffmpeg -version > /dev/null 2>&1") != 0) GTEST_SKIP() << "ffmpeg is not installed";
  troupe::runtime rt(troupe::options{.threads = 1});
  const test::scratch_folder folder;
  const std::string path = folder.path() / "sine.wav";
  for (const char* codec : {"pcm_u8", "pcm_s16le", "pcm_s24le", "pcm_s32le", "pcm_f32le"}) {
    ASSERT_EQ(std::system(("ffmpeg -y -loglevel error -f lavfi -i sine=frequency=440:duration=1:sample_rate=8000 -ac 2 "
                           "-c:a " +
                           std::string(codec) + " '" + path + "'")
                              .c_str()),
              0);
    EXPECT_EQ(connect::wav_format(path).channels, 2u) << codec;
    const heard h = all_of(rt, connect::wav_samples(path, 1000));
    ASSERT_EQ(h.all.size(), 16'000u) << codec;
    // An eighth of the full range, as lavfi makes it, shared by two channels; 440 times up and down.
    int ups = 0;
    float most = 0;
    for (std::size_t i = 2; i < h.all.size(); i += 2) {
      ups += h.all[i - 2] < 0.0F && h.all[i] >= 0.0F ? 1 : 0;
      most = std::max(most, std::abs(h.all[i]));
    }
    EXPECT_NEAR(ups, 440, 1) << codec;
    EXPECT_NEAR(most, 0.125F / std::sqrt(2.0F), 0.01F) << codec;
  }
}

}  // namespace
