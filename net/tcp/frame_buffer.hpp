// What this file is for: the bytes of a control connection as they arrive, and the frames that are whole in them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <troupe/error.hpp>

namespace troupe::net::tcp {

/// A frame is a length (u32) and so many bytes. The memory grows with what has arrived, by doubling, and not with what
/// a length promises; frames are read where they lie.
class frame_buffer {
 public:
  explicit frame_buffer(std::size_t frame_max) : frame_max_(frame_max) {}

  /// Where the next bytes go; never empty.
  std::span<std::byte> room() {
    if (begin_ == end_) begin_ = end_ = 0;
    if (begin_ == end_ && size_ > keep_max) resize(start);
    if (size_ - end_ < size_ / 4 || size_ == 0) make_room();
    return {memory_.get() + end_, size_ - end_};
  }
  void arrived(std::size_t bytes) { end_ += bytes; }

  /// The next whole frame, valid until `room` is called. Throws `error(protocol_error)` for a length that is not
  /// allowed.
  std::optional<std::span<const std::byte>> next() {
    std::uint32_t length = 0;
    if (end_ - begin_ < sizeof length) return std::nullopt;
    std::memcpy(&length, memory_.get() + begin_, sizeof length);
    if (length > frame_max_)
      throw error(errc::protocol_error, "a frame of " + std::to_string(length) + " bytes is announced, at most " +
                                       std::to_string(frame_max_) + " are allowed");
    if (end_ - begin_ - sizeof length < length) return std::nullopt;
    const std::span<const std::byte> frame(memory_.get() + begin_ + sizeof length, length);
    begin_ += sizeof length + length;
    return frame;
  }

  std::size_t memory_bytes() const { return size_; }

 private:
  static constexpr std::size_t start = 64u << 10;
  static constexpr std::size_t keep_max = 1u << 20;

  void make_room() {
    const std::size_t held = end_ - begin_;
    if (held <= size_ / 2 && size_ != 0) {  // moves at most as much as it gains
      std::memmove(memory_.get(), memory_.get() + begin_, held);
      begin_ = 0;
      end_ = held;
    } else {
      resize(std::max(start, 2 * size_));
    }
  }
  void resize(std::size_t bytes) {
    std::unique_ptr<std::byte[]> memory(new std::byte[bytes]);  // not cleared
    if (end_ != begin_) std::memcpy(memory.get(), memory_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    memory_ = std::move(memory);
    size_ = bytes;
  }

  const std::size_t frame_max_;
  std::unique_ptr<std::byte[]> memory_;
  std::size_t size_ = 0, begin_ = 0, end_ = 0;
};

}  // namespace troupe::net::tcp
