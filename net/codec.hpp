// What this file is for: numbers, texts and bytes in frames: written little-endian, read with every length checked.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Fixed numbers are little-endian; counts and sizes are varints of seven bits a byte, at most ten, in the shortest
// form. A reader never allocates more than what is left of its frame, whatever a length says.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/error.hpp>

namespace troupe::net {

static_assert(std::endian::native == std::endian::little, "frames are copied as they are in memory");

class writer {
 public:
  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void fixed(T v) { raw(&v, sizeof v); }
  void varint(std::uint64_t v) {
    for (; v >= 0x80; v >>= 7) to_.push_back(static_cast<std::byte>(v | 0x80));
    to_.push_back(static_cast<std::byte>(v));
  }
  /// Small numbers of either sign in few bytes.
  void signed_varint(std::int64_t v) {
    varint((static_cast<std::uint64_t>(v) << 1) ^ static_cast<std::uint64_t>(v >> 63));
  }
  void bytes(std::span<const std::byte> b) {
    varint(b.size());
    raw(b.data(), b.size());
  }
  void text(std::string_view s) { bytes(std::as_bytes(std::span(s.data(), s.size()))); }
  /// Without a length.
  void raw(const void* from, std::size_t n) {
    const auto* b = static_cast<const std::byte*>(from);
    to_.insert(to_.end(), b, b + n);
  }
  /// Sets what was written with `fixed` at that place.
  template <class T>
  void patch(std::size_t at, T v) {
    std::memcpy(to_.data() + at, &v, sizeof v);
  }

  std::size_t size() const { return to_.size(); }
  bool empty() const { return to_.empty(); }
  std::span<const std::byte> view() const { return to_; }
  std::vector<std::byte> take() { return std::move(to_); }
  void clear() { to_.clear(); }
  /// Forgets what was written after the first so many bytes.
  void cut(std::size_t size) { to_.resize(size); }

 private:
  std::vector<std::byte> to_;
};

/// Throws `error(protocol_error)` for what is not whole or not allowed.
class reader {
 public:
  explicit reader(std::span<const std::byte> from) : from_(from) {}

  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) T fixed() {
    T v;
    std::memcpy(&v, raw(sizeof v).data(), sizeof v);
    return v;
  }
  std::uint64_t varint() {
    std::uint64_t v = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      const auto b = std::to_integer<std::uint64_t>(raw(1)[0]);
      if (shift == 63 && b > 1) break;
      v |= (b & 0x7f) << shift;
      if (b < 0x80) {
        if (b == 0 && shift != 0) break;
        return v;
      }
    }
    throw error(errc::protocol_error, "a number in a frame is malformed");
  }
  std::int64_t signed_varint() {
    const std::uint64_t v = varint();
    return static_cast<std::int64_t>(v >> 1) ^ -static_cast<std::int64_t>(v & 1);
  }
  /// A number that must not be larger.
  std::uint64_t at_most(std::uint64_t limit, const char* what) {
    const std::uint64_t v = varint();
    if (v > limit)
      throw error(errc::protocol_error, std::string(what) + " in a frame is " + std::to_string(v) + ", at most " +
                                       std::to_string(limit) + " is allowed");
    return v;
  }
  /// How many elements follow, of so many bytes each at least.
  std::size_t count(std::size_t bytes_each, const char* what) {
    return static_cast<std::size_t>(at_most(left() / bytes_each, what));
  }
  std::span<const std::byte> bytes() { return raw(count(1, "a length")); }
  std::string text(std::size_t limit) {
    const auto b = raw(static_cast<std::size_t>(at_most(std::min<std::uint64_t>(limit, left()), "a length")));
    return {reinterpret_cast<const char*>(b.data()), b.size()};
  }
  std::span<const std::byte> raw(std::size_t n) {
    if (n > left()) throw error(errc::protocol_error, "a frame ends too early");
    const auto b = from_.subspan(at_, n);
    at_ += n;
    return b;
  }
  std::size_t left() const { return from_.size() - at_; }
  /// Nothing may be left over.
  void end() const {
    if (left() != 0) throw error(errc::protocol_error, "a frame is longer than what it says");
  }

 private:
  std::span<const std::byte> from_;
  std::size_t at_ = 0;
};

}  // namespace troupe::net
