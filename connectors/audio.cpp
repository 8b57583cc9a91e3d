// What this file is for: samples out of bytes: the headers of WAV files, formats of samples, blocks.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "connectors/audio.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include <troupe/error.hpp>

namespace troupe::connectors {

namespace {

[[noreturn]] void fail(const std::string& what, const std::string& why) {
  throw error(errc::io_failed, what + ": " + why);
}
[[noreturn]] void refuse(const std::string& what, const std::string& why) {
  throw error(errc::bad_argument, what + ": " + why);
}

std::size_t bytes_of(sample_format f) {
  switch (f) {
    case sample_format::u8:
      return 1;
    case sample_format::s16:
    case sample_format::u16:
      return 2;
    case sample_format::s24:
      return 3;
    case sample_format::s32:
    case sample_format::f32:
      return 4;
  }
  return 0;
}

std::uint32_t number(const unsigned char* at, std::size_t bytes) {
  std::uint32_t n = 0;
  for (std::size_t i = 0; i < bytes; ++i) n |= static_cast<std::uint32_t>(at[i]) << (8 * i);
  return n;
}

float sample(const unsigned char* at, sample_format f) {
  const std::uint32_t n = number(at, bytes_of(f));
  switch (f) {
    case sample_format::u8:
      return (static_cast<float>(n) - 128.0F) / 128.0F;
    case sample_format::s16:
      return static_cast<float>(static_cast<std::int16_t>(n)) / 32768.0F;
    case sample_format::u16:
      return (static_cast<float>(n) - 32768.0F) / 32768.0F;
    case sample_format::s24:
      return static_cast<float>(static_cast<std::int32_t>(n << 8) >> 8) / 8388608.0F;
    case sample_format::s32:
      return static_cast<float>(static_cast<std::int32_t>(n)) / 2147483648.0F;
    case sample_format::f32:
      return std::bit_cast<float>(n);
  }
  return 0;
}

void check(const sound& s, std::size_t count, const std::string& what) {
  if (s.channels < 1 || s.channels > 64) refuse(what, std::to_string(s.channels) + " channels; 1 to 64");
  if (bytes_of(s.format) == 0) refuse(what, "no such format of samples");
  if (count < 1 || count > (std::size_t{1} << 24))
    refuse(what, "blocks of " + std::to_string(count) + " samples; 1 to 2^24");
}

// Appends the samples that bytes are, a whole number of them.
void convert(const std::vector<unsigned char>& bytes, const sound& s, std::vector<float>& to) {
  const std::size_t each = bytes_of(s.format), whole = bytes.size() / each;
  for (std::size_t i = 0; i < whole; ++i) to.push_back(sample(bytes.data() + i * each, s.format));
}

using file = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

struct wav {
  file at{nullptr, &std::fclose};
  sound is;
  std::uint64_t bytes_left = 0;  // of the samples
};

void read_all(std::FILE* f, unsigned char* to, std::size_t bytes, const std::string& path) {
  if (std::fread(to, 1, bytes, f) != bytes)
    fail("'" + path + "'", std::ferror(f) ? std::strerror(errno) : "it ends in its header");
}

// Reads the header and stops at the first sample.
wav open_wav(const std::string& path) {
  wav w;
  w.at.reset(std::fopen(path.c_str(), "rb"));
  if (!w.at) fail("'" + path + "'", std::strerror(errno));
  std::array<unsigned char, 40> b{};
  read_all(w.at.get(), b.data(), 12, path);
  if (std::memcmp(b.data(), "RIFF", 4) != 0 || std::memcmp(b.data() + 8, "WAVE", 4) != 0)
    refuse("'" + path + "'", "it is no WAV file");
  bool has_format = false;
  for (;;) {
    read_all(w.at.get(), b.data(), 8, path);
    const std::string_view name(reinterpret_cast<const char*>(b.data()), 4);
    const std::uint32_t bytes = number(b.data() + 4, 4);
    if (name == "data") {
      if (!has_format) refuse("'" + path + "'", "its samples come before their format");
      w.bytes_left = bytes;
      return w;
    }
    std::size_t taken = 0;
    if (name == "fmt ") {
      if (bytes < 16) refuse("'" + path + "'", "the part about its format has " + std::to_string(bytes) + " bytes");
      taken = std::min<std::size_t>(bytes, b.size());
      read_all(w.at.get(), b.data(), taken, path);
      std::uint32_t coding = number(b.data(), 2);
      const std::uint32_t bits = number(b.data() + 14, 2);
      if (coding == 0xfffe && taken >= 26) coding = number(b.data() + 24, 2);  // said further behind
      w.is.channels = number(b.data() + 2, 2);
      w.is.rate = number(b.data() + 4, 4);
      if (coding == 3 && bits == 32)
        w.is.format = sample_format::f32;
      else if (coding == 1 && (bits == 8 || bits == 16 || bits == 24 || bits == 32))
        w.is.format = bits == 8    ? sample_format::u8
                      : bits == 16 ? sample_format::s16
                      : bits == 24 ? sample_format::s24
                                   : sample_format::s32;
      else
        refuse("'" + path + "'", "coding " + std::to_string(coding) + " with " + std::to_string(bits) +
                                     " bits is not understood; PCM of 8 to 32 bits and floats of 32 are");
      check(w.is, 1, "'" + path + "'");
      has_format = true;
    }
    // Parts have an even number of bytes.
    if (std::fseek(w.at.get(), static_cast<long>(bytes - taken + (bytes & 1)), SEEK_CUR) != 0)
      fail("'" + path + "'", std::strerror(errno));
  }
}

stream::source<samples> read_wav(std::string path, wav w, std::size_t count) {
  const stream::recycler<std::vector<float>> memory;
  std::vector<unsigned char> bytes;
  const std::size_t each = bytes_of(w.is.format) * w.is.channels, block = count * each;
  bool is_short = false;
  while (w.bytes_left != 0 && !is_short) {
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(block, w.bytes_left));
    bytes.resize(wanted);
    const std::size_t got = std::fread(bytes.data(), 1, wanted, w.at.get());
    if (got < wanted && std::ferror(w.at.get())) fail("'" + path + "'", std::strerror(errno));
    is_short = got < wanted;
    w.bytes_left -= got;
    bytes.resize(got - got % each);
    if (bytes.empty()) {
      if (!is_short) fail("'" + path + "'", "its samples end in the middle of one");
      break;
    }
    samples s = memory.take();
    s->clear();
    convert(bytes, w.is, *s);
    co_yield std::move(s);
    if (got % each != 0 && !is_short) fail("'" + path + "'", "its samples end in the middle of one");
  }
  if (is_short || w.bytes_left != 0)
    fail("'" + path + "'", "it ends " + std::to_string(w.bytes_left) + " bytes before its samples do");
}

stream::source<samples> read_raw(int descriptor, sound is, std::size_t count) {
  const stream::recycler<std::vector<float>> memory;
  const std::size_t each = bytes_of(is.format) * is.channels, block = count * each;
  std::vector<unsigned char> bytes;
  for (bool is_over = false; !is_over;) {
    std::size_t got = 0;
    bytes.resize(block);
    while (got != block && !is_over) {
      co_await stream::readable(descriptor);
      const ssize_t n = ::read(descriptor, bytes.data() + got, block - got);
      if (n > 0)
        got += static_cast<std::size_t>(n);
      else if (n == 0)
        is_over = true;
      else if (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK)
        fail("samples from descriptor " + std::to_string(descriptor), std::strerror(errno));
    }
    const std::size_t rest = got % each;
    bytes.resize(got - rest);
    if (!bytes.empty()) {
      samples s = memory.take();
      s->clear();
      convert(bytes, is, *s);
      co_yield std::move(s);
    }
    if (rest != 0) fail("samples from descriptor " + std::to_string(descriptor), "they end in the middle of one");
  }
}

}  // namespace

sound wav_format(const std::string& path) { return open_wav(path).is; }

stream::source<samples> wav_samples(const std::string& path, std::size_t count, std::uint64_t from) {
  wav w = open_wav(path);
  check(w.is, count, "'" + path + "'");
  const std::size_t each = bytes_of(w.is.format) * w.is.channels;
  const std::uint64_t skipped = std::min<std::uint64_t>(from, w.bytes_left / each) * each;
  if (std::fseek(w.at.get(), static_cast<long>(skipped), SEEK_CUR) != 0) fail("'" + path + "'", std::strerror(errno));
  w.bytes_left -= skipped;
  return read_wav(path, std::move(w), count);
}

stream::source<samples> raw_samples(int descriptor, const sound& s, std::size_t count) {
  check(s, count, "samples from descriptor " + std::to_string(descriptor));
  return read_raw(descriptor, s, count);
}

}  // namespace troupe::connectors
