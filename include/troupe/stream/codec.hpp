// What this file is for: items as bytes, and back: what leaves a process, or comes into it, by a connector.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   readings | st::encode("pack") | st::sink("send", connectors::socket_writer(...))
//   messages | st::decode<reading>("unpack", {.fail = st::dead_letter}) | ...
//
// The bytes of what is trivially copyable are those in memory, so both sides must be of one kind of machine and agree
// on the type: there are no names and no versions in them. Numbers of elements have 64 bits. Decoding takes any bytes:
// it reads none beyond their end, makes no more elements than they have bytes, and throws where they are no such value;
// but a trivially copyable struct is taken as it is, so one with a `bool` or an `enum` wants a codec of its own where
// the other side is not trusted.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/error.hpp>

namespace troupe::stream {

/// What is left of the bytes that a value is decoded from.
class byte_reader {
 public:
  explicit byte_reader(std::string_view all) : left_(all) {}
  std::size_t left() const noexcept { return left_.size(); }
  /// The next n. Throws `error(bad_argument)` if there are fewer.
  std::string_view take(std::size_t n) {
    if (n > left_.size())
      throw error(errc::bad_argument, "decoding: " + std::to_string(n) + " bytes are wanted where " +
                                          std::to_string(left_.size()) + " are left");
    const auto taken = left_.substr(0, n);
    left_.remove_prefix(n);
    return taken;
  }

 private:
  std::string_view left_;
};

/// How values of a type become bytes. Specialise it for types of your own that are not trivially copyable, with these
/// two functions; for a struct of members that have codecs, `encode_members` and `decode_members` do it:
///
///     template <>
///     struct troupe::stream::codec<hit> {
///       static void encode(const hit& h, std::string& to) { encode_members(to, h.host, h.at); }
///       static hit decode(byte_reader& from) { hit h; decode_members(from, h.host, h.at); return h; }
///     };
template <class T>
struct codec {
  static_assert(std::is_trivially_copyable_v<T>,
                "troupe::stream::codec: there is none for this type: specialise troupe::stream::codec<T>");
  static_assert(!std::is_pointer_v<T> && !std::ranges::borrowed_range<T>,
                "troupe::stream::codec: a pointer, or a view of elements elsewhere, means nothing in another process");
  static constexpr bool is_raw = true;
  static void encode(const T& x, std::string& to) { to.append(reinterpret_cast<const char*>(&x), sizeof(T)); }
  static T decode(byte_reader& from) {
    std::array<std::byte, sizeof(T)> raw;
    std::memcpy(raw.data(), from.take(sizeof(T)).data(), sizeof(T));
    return std::bit_cast<T>(raw);
  }
};
template <>
struct codec<bool> {
  static void encode(bool x, std::string& to) { to.push_back(x ? '\1' : '\0'); }
  static bool decode(byte_reader& from) {
    const char b = from.take(1)[0];
    if (b != 0 && b != 1) throw error(errc::bad_argument, "decoding: a bool that is neither");
    return b == 1;
  }
};

template <class... T>
void encode_members(std::string& to, const T&... x) {
  (codec<T>::encode(x, to), ...);
}
template <class... T>
void decode_members(byte_reader& from, T&... x) {
  ((x = codec<T>::decode(from)), ...);
}

namespace parts_of_codecs {

/// A number of elements, of which each has at least so many bytes.
inline std::size_t decode_count(byte_reader& from, std::size_t each) {
  const auto n = codec<std::uint64_t>::decode(from);
  if (n > from.left() / each)
    throw error(errc::bad_argument, "decoding: " + std::to_string(n) + " elements are announced in " +
                                        std::to_string(from.left()) + " bytes");
  return static_cast<std::size_t>(n);
}
inline void encode_count(std::size_t n, std::string& to) { codec<std::uint64_t>::encode(n, to); }

}  // namespace parts_of_codecs

template <>
struct codec<std::string> {
  static void encode(const std::string& x, std::string& to) {
    parts_of_codecs::encode_count(x.size(), to);
    to += x;
  }
  static std::string decode(byte_reader& from) {
    const std::size_t n = parts_of_codecs::decode_count(from, 1);
    return std::string(from.take(n));
  }
};
template <class T>
struct codec<std::vector<T>> {
  static constexpr bool is_plain = requires { codec<T>::is_raw; };
  static void encode(const std::vector<T>& x, std::string& to) {
    parts_of_codecs::encode_count(x.size(), to);
    if constexpr (is_plain) {
      if (!x.empty()) to.append(reinterpret_cast<const char*>(x.data()), x.size() * sizeof(T));
    } else {
      for (const auto& e : x) codec<T>::encode(e, to);
    }
  }
  static std::vector<T> decode(byte_reader& from) {
    const std::size_t n = parts_of_codecs::decode_count(from, is_plain ? sizeof(T) : 1);
    std::vector<T> x;
    if constexpr (is_plain) {
      x.resize(n);
      if (n != 0) std::memcpy(x.data(), from.take(n * sizeof(T)).data(), n * sizeof(T));
    } else {
      for (std::size_t i = 0; i < n; ++i) x.push_back(codec<T>::decode(from));
    }
    return x;
  }
};
template <class T>
struct codec<std::optional<T>> {
  static void encode(const std::optional<T>& x, std::string& to) {
    codec<bool>::encode(x.has_value(), to);
    if (x) codec<T>::encode(*x, to);
  }
  static std::optional<T> decode(byte_reader& from) {
    if (!codec<bool>::decode(from)) return std::nullopt;
    return codec<T>::decode(from);
  }
};
template <class A, class B>
struct codec<std::pair<A, B>> {
  static void encode(const std::pair<A, B>& x, std::string& to) { encode_members(to, x.first, x.second); }
  static std::pair<A, B> decode(byte_reader& from) {
    A a = codec<A>::decode(from);
    return {std::move(a), codec<B>::decode(from)};
  }
};
template <class... T>
struct codec<std::tuple<T...>> {
  static void encode(const std::tuple<T...>& x, std::string& to) {
    std::apply([&](const T&... each) { encode_members(to, each...); }, x);
  }
  static std::tuple<T...> decode(byte_reader& from) { return std::tuple<T...>{codec<T>::decode(from)...}; }
};
template <class Map>
requires requires {
  typename Map::mapped_type;
  requires std::same_as<typename Map::value_type, std::pair<const typename Map::key_type, typename Map::mapped_type>>;
}
struct codec<Map> {
  static void encode(const Map& x, std::string& to) {
    parts_of_codecs::encode_count(x.size(), to);
    for (const auto& [key, value] : x) encode_members(to, key, value);
  }
  static Map decode(byte_reader& from) {
    Map x;
    for (std::size_t n = parts_of_codecs::decode_count(from, 1); n != 0; --n) {
      auto key = codec<typename Map::key_type>::decode(from);
      x.emplace(std::move(key), codec<typename Map::mapped_type>::decode(from));
    }
    return x;
  }
};

/// The bytes of a value.
template <class T>
std::string encoded(const T& x) {
  std::string to;
  codec<T>::encode(x, to);
  return to;
}
/// The value that all these bytes are. Throws `error(bad_argument)` if they are none.
template <class T>
T decoded(std::string_view from) {
  byte_reader r(from);
  T x = codec<T>::decode(r);
  if (r.left() != 0) throw error(errc::bad_argument, "decoding: " + std::to_string(r.left()) + " bytes are left over");
  return x;
}

}  // namespace troupe::stream
