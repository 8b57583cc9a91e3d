// What this file is for: text as a stream: the lines of files, of files that grow, and of descriptors; lines to write.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Each line has the offset of its first byte, so a file can be read again from there (`line_options::from`): of these
// sources `file_lines` and `tail_lines` can replay, `descriptor_lines` cannot.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <troupe/stream.hpp>

namespace troupe::connectors {

struct line {
  std::string text;          ///< without the newline
  std::uint64_t offset = 0;  ///< of its first byte: in the file, or since the descriptor was first read
  /// False for a part of a line: what is above `line_max` begins a new item, and the end may come without a newline.
  bool is_whole = true;
};

struct line_options {
  /// Longest line, in bytes, at least 1. A longer one comes in pieces of that size, which are not whole; so does the
  /// rest of it.
  std::size_t line_max = 1u << 20;
  /// Of files: where to begin. In the middle of a line its rest is the first item.
  std::uint64_t from = 0;
};

/// The lines of a file, to its end as it is when it is reached. Reads block the worker that asks. Throws
/// `error(io_failed)` at once if the file cannot be opened or read from there; what goes wrong later fails the stream.
stream::source<line> file_lines(const std::string& path, const line_options& o = {});

/// The lines that come over a descriptor (a pipe, a socket, a terminal, standard input is 0), to its end. Waits for
/// bytes without a thread, and reads only while there is room in the stream. The descriptor stays the caller's and must
/// stay open until the stream has ended.
stream::source<line> descriptor_lines(int descriptor, const line_options& o = {});

struct tail_options {
  line_options lines{};
  /// Begins at the end of the file, not at `lines.from`.
  bool from_end = false;
  /// How often is looked for more, at least 1 ms.
  std::chrono::milliseconds interval{100};
};

/// The lines of a file that grows, for ever. Only whole lines come, but for those above `line_max`. When another file
/// has its name (it was rotated), the old one is read to its end first, then the new one from its beginning; when the
/// file has become shorter, it is read from its beginning. While there is no file of that name, waits for one. Offsets
/// are those in the file that the line is from.
stream::source<line> tail_lines(const std::string& path, const tail_options& o = {});

/// Appends a newline to each text and writes it to a file: the function of a sink. `st::sink("out",
/// file_writer(path))`. The file is made, or emptied. Each line is written when it comes; the call throws
/// `error(disk_full)` where there is no room, `error(io_failed)` for other reasons. The file then ends as it did before
/// the call, so a line may be tried again, or left out; of a pipe or a device, a part of the line may have been
/// written.
class file_writer {
 public:
  explicit file_writer(const std::string& path);
  void operator()(const std::string& text);

 private:
  struct state;
  std::shared_ptr<state> state_;
};

}  // namespace troupe::connectors

/// A line counts with its text.
template <>
struct troupe::stream::item_bytes<troupe::connectors::line> {
  static std::size_t of(const troupe::connectors::line& l) noexcept { return sizeof l + l.text.size(); }
};
