// What this file is for: where one item ends and the next begins, in bytes that come in blocks of any size.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not for users.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace troupe::connectors::detail {

/// What has been cut out.
struct piece {
  std::string text;
  std::uint64_t offset = 0;  ///< of its first byte
  bool is_whole = true;
};

/// Cuts bytes into lines. Bytes are added at the end, lines taken from the front.
class line_cutter {
 public:
  line_cutter(std::size_t line_max, std::uint64_t offset) : line_max_(line_max), offset_(offset) {}

  void add(const char* data, std::size_t n) { bytes_.append(data, n); }
  /// Returns the next line, or the next piece of one that is too long; none if more bytes are needed.
  std::optional<piece> next() {
    const std::size_t looked = std::max(looked_, begin_);
    const std::size_t end = bytes_.find('\n', looked);
    const std::size_t length = (end == std::string::npos ? bytes_.size() : end) - begin_;
    if (length > line_max_) {
      is_piece_ = true;
      return take(line_max_, 0, false);
    }
    if (end == std::string::npos) {
      looked_ = bytes_.size();
      tidy();
      return {};
    }
    return take(length, 1, !std::exchange(is_piece_, false));
  }
  /// What is left without a newline, at the end.
  std::optional<piece> rest() {
    if (begin_ == bytes_.size()) return {};
    is_piece_ = false;
    return take(bytes_.size() - begin_, 0, false);
  }

 private:
  piece take(std::size_t length, std::size_t newline, bool is_whole) {
    piece p{bytes_.substr(begin_, length), offset_, is_whole};
    begin_ += length + newline;
    offset_ += length + newline;
    looked_ = begin_;
    return p;
  }
  // Moves what is left to the front; each byte is moved once for each block that comes.
  void tidy() {
    bytes_.erase(0, begin_);
    looked_ -= begin_;
    begin_ = 0;
  }
  const std::size_t line_max_;
  std::string bytes_;
  std::size_t begin_ = 0, looked_ = 0;
  std::uint64_t offset_;
  bool is_piece_ = false;
};

/// Cuts bytes into records: each is its length, in four bytes with the largest first, and as many bytes.
class record_cutter {
 public:
  explicit record_cutter(std::size_t record_max) : record_max_(record_max) {}

  void add(const char* data, std::size_t n) { bytes_.append(data, n); }
  /// Returns the next record; none if more bytes are needed, or `is_broken()`.
  std::optional<piece> next() {
    if (is_broken_ || bytes_.size() - begin_ < 4) return tidied();
    std::uint32_t length = 0;
    for (std::size_t i = 0; i < 4; ++i) length = length << 8 | static_cast<unsigned char>(bytes_[begin_ + i]);
    if (length > record_max_) {
      is_broken_ = true;
      return {};
    }
    if (bytes_.size() - begin_ - 4 < length) return tidied();
    piece p{bytes_.substr(begin_ + 4, length), offset_, true};
    begin_ += 4 + std::size_t{length};
    offset_ += 4 + std::uint64_t{length};
    return p;
  }
  /// True behind a record that claims to be too long: nothing that follows can be told apart.
  bool is_broken() const { return is_broken_; }
  /// What is left, at the end.
  std::optional<piece> rest() {
    if (begin_ == bytes_.size()) return {};
    piece p{bytes_.substr(begin_, record_max_ + 4), offset_, false};
    begin_ = bytes_.size();
    return p;
  }

 private:
  std::optional<piece> tidied() {
    bytes_.erase(0, begin_);
    begin_ = 0;
    return {};
  }
  const std::size_t record_max_;
  std::string bytes_;
  std::size_t begin_ = 0;
  std::uint64_t offset_ = 0;
  bool is_broken_ = false;
};

}  // namespace troupe::connectors::detail
