// What this file is for: what another program writes to its standard output, as a stream of blocks of one size.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   st::from("camera", process_blocks({"ffmpeg", "-i", file, "-f", "rawvideo", "-pix_fmt", "gray", "pipe:1"}, n))
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <troupe/stream.hpp>

namespace troupe::connectors {

/// A block of bytes, recycled: its memory goes back when the item goes.
using block = stream::recycled<std::vector<unsigned char>>;

/// Starts a program (its name is looked for in PATH) and yields what it writes, in blocks of `bytes`. Reads only while
/// there is room in the stream, so a program that writes faster waits. Its standard input is empty.
///
/// The stream ends when the program has closed its output and has ended with code 0. Otherwise it fails, with
/// `error(io_failed)` as the cause: for another code, a signal, or an end in the middle of a block; the text has what
/// the program last said on its standard error, 4 KiB at most. If the stream ends first, the program is
/// killed, and with it what it has started. It cannot replay. Throws `error(io_failed)` at once if the program cannot
/// be started, `error(bad_argument)` for an empty command and for blocks of no bytes.
stream::source<block> process_blocks(const std::vector<std::string>& command, std::size_t bytes);

}  // namespace troupe::connectors
