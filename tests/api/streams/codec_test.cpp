// What this file is for: items as bytes and back.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <troupe/stream.hpp>
#include <troupe/troupe.hpp>

#include "ledgers.hpp"

namespace {

namespace st = troupe::stream;

struct point {
  double x, y;
  bool operator==(const point&) const = default;
};
struct hit {
  std::string host;
  std::int64_t at = 0;
  std::vector<std::string> tags;
  bool operator==(const hit&) const = default;
};

enum class flag : std::uint8_t { no, yes };

}  // namespace
template <>
struct troupe::stream::codec<flag> {
  static void encode(const flag& f, std::string& to) { to += f == flag::yes ? 'Y' : 'N'; }
  static flag decode(byte_reader& from) {
    const char c = from.take(1)[0];
    if (c != 'Y' && c != 'N') throw error(errc::bad_argument, "no flag");
    return c == 'Y' ? flag::yes : flag::no;
  }
};
template <>
struct troupe::stream::codec<hit> {
  static void encode(const hit& h, std::string& to) { encode_members(to, h.host, h.at, h.tags); }
  static hit decode(byte_reader& from) {
    hit h;
    decode_members(from, h.host, h.at, h.tags);
    return h;
  }
};
namespace {

template <class T>
void expect_back(const T& x) {
  const std::string bytes = st::encoded(x);
  EXPECT_EQ(st::decoded<T>(bytes), x);
  // Any beginning of it is no such value, and neither is anything longer.
  for (std::size_t n = 0; n < bytes.size(); ++n)
    EXPECT_THROW(static_cast<void>(st::decoded<T>(std::string_view(bytes).substr(0, n))), troupe::error) << n;
  EXPECT_THROW(static_cast<void>(st::decoded<T>(bytes + '\0')), troupe::error);
}

TEST(stream_codec, values_come_back_and_parts_of_them_do_not) {
  expect_back(42);
  expect_back(std::numeric_limits<std::uint64_t>::max());
  expect_back(true);
  expect_back(point{1.5, -2});
  expect_back(std::array<int, 3>{1, 2, 3});
  expect_back(std::string());
  expect_back(std::string("a\0b\n", 4));
  expect_back(std::vector<int>{});
  expect_back(std::vector<point>{{1, 2}, {3, 4}});
  expect_back(std::vector<bool>{true, false, true});
  expect_back(std::vector<std::vector<std::string>>{{"a"}, {}, {"b", "c"}});
  expect_back(std::optional<std::string>());
  expect_back(std::optional<int>(7));
  expect_back(std::pair<int, std::string>(1, "one"));
  expect_back(std::tuple<int, std::string, std::optional<double>>(1, "one", 1.0));
  expect_back(std::map<std::string, int>{{"a", 1}, {"b", 2}});
  expect_back(std::unordered_map<int, std::vector<int>>{{1, {2, 3}}, {4, {}}});
  expect_back(hit{"host", 5, {"x", "y"}});
  expect_back(std::vector<hit>{{"host", 5, {"x", "y"}}, {"", 0, {}}});
}

TEST(stream_codec, numbers_of_elements_that_cannot_be_there_make_nothing) {
  for (const std::uint64_t n : {std::numeric_limits<std::uint64_t>::max(), std::uint64_t{1} << 61, std::uint64_t{3}}) {
    const std::string bytes = st::encoded(n) + "ab";
    EXPECT_THROW(static_cast<void>(st::decoded<std::string>(bytes)), troupe::error);
    EXPECT_THROW(static_cast<void>(st::decoded<std::vector<double>>(bytes)), troupe::error);
    EXPECT_THROW(static_cast<void>(st::decoded<std::vector<std::string>>(bytes)), troupe::error);
    EXPECT_THROW(static_cast<void>((st::decoded<std::map<int, int>>(bytes))), troupe::error);
  }
  EXPECT_THROW(static_cast<void>(st::decoded<bool>("\2")), troupe::error);
}

TEST(stream_codec, stages_encode_and_decode_and_what_cannot_be_decoded_fails_by_itself) {
  troupe::runtime rt(troupe::options{.threads = 2});
  const std::vector<hit> all{{"a", 1, {}}, {"b", 2, {"x"}}, {"c", 3, {"y", "z"}}};
  std::vector<hit> got;
  std::vector<std::string> lost;
  auto p = st::from("hits", all) | st::encode("pack") |
           st::map("wire",
                   [](std::string s) {
                     if (s.size() % 2 == 1) s.pop_back();
                     return s;
                   }) |
           st::decode<hit>("unpack", {.fail = st::dead_letter}) |
           st::sink("keep", [&](const hit& h) { got.push_back(h); });
  std::vector<hit> whole;
  for (const hit& h : all)
    if (st::encoded(h).size() % 2 == 0) whole.push_back(h);
  ASSERT_FALSE(whole.size() == all.size() || whole.empty());
  auto r = p.start(rt, {.on_dead_letter = [&](const st::letter& l) {
                     ASSERT_NE(l.as<std::string>(), nullptr);
                     lost.push_back(*l.as<std::string>());
                   }});
  ASSERT_TRUE(r.wait_for(test::patience));
  EXPECT_EQ(got, whole);
  EXPECT_EQ(lost.size(), all.size() - whole.size());
  test::expect_balanced(r.report());
}

TEST(stream_codec, elements_of_vectors_have_the_codec_of_their_type) {
  const std::vector<flag> flags{flag::yes, flag::no};
  EXPECT_EQ(st::encoded(flags).substr(8), "YN");
  expect_back(flags);
  EXPECT_THROW(static_cast<void>(st::decoded<std::vector<flag>>(st::encoded(std::uint64_t{1}) + '\1')), troupe::error);
  const std::vector<std::optional<int>> maybe{1, std::nullopt};
  EXPECT_EQ(st::encoded(maybe).size(), 8u + 5 + 1);
  expect_back(maybe);
  EXPECT_THROW(static_cast<void>(st::decoded<std::vector<std::optional<int>>>(st::encoded(std::uint64_t{1}) + '\7')),
               troupe::error);
}

}  // namespace
