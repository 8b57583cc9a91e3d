// What this file is for: sound and other samples as a stream: WAV files, and raw samples that come over a descriptor.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Samples are floats: -1 to 1 for whole numbers of their format's size, as they are for `f32`. Those of several
// channels take turns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <troupe/stream.hpp>

namespace troupe::connectors {

/// How a sample is written, in bytes with the least first. `u8` and `u16` have their middle at half of their range.
enum class sample_format : std::uint8_t { u8, s16, u16, s24, s32, f32 };

/// What a source of sound has.
struct sound {
  std::uint32_t rate = 48'000;  ///< samples of a channel in a second
  unsigned channels = 1;        ///< 1 to 64
  sample_format format = sample_format::s16;
};

/// Samples one after the other; recycled: their memory goes back when the item goes.
using samples = stream::recycled<std::vector<float>>;

/// What the header of a WAV file (RIFF, PCM or float) says. Throws `error(io_failed)` for what cannot be read,
/// `error(bad_argument)` for another format.
sound wav_format(const std::string& path);

/// The samples of a WAV file in blocks of `count` for each channel; the last block may be shorter. `from`: the first
/// one, counted for each channel, so it can replay. Reads block the worker that asks. Throws as `wav_format` at once,
/// and `error(bad_argument)` for blocks of no samples; a file that ends before the samples that its header promises, or
/// in the middle of one, fails the stream with `error(io_failed)` after those that are there.
stream::source<samples> wav_samples(const std::string& path, std::size_t count, std::uint64_t from = 0);

/// Samples without a header that come over a descriptor (a pipe, a socket, standard input is 0), to its end; the last
/// block may be shorter. Waits for bytes without a thread, and reads only while there is room in the stream. An end in
/// the middle of a sample fails the stream with `error(io_failed)`. The descriptor stays the caller's and must stay
/// open until the stream has ended. It cannot replay. Throws `error(bad_argument)` at once for what makes no sense.
stream::source<samples> raw_samples(int descriptor, const sound& s, std::size_t count);

}  // namespace troupe::connectors
