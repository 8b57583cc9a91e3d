// What this file is for: transfers between the two ends of a socket pair: compression, and what must not be believed.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>

#include "conformance.hpp"
#include "net/tcp/bulk_in.hpp"
#include "net/tcp/bulk_out.hpp"
#include "net/tcp/packer.hpp"

namespace {

using namespace troupe::net;
using namespace troupe::net::tcp;
using troupe::errc;
using troupe::error;
using wires::as_bytes;
using wires::as_text;
using wires::bytes;
using wires::noise;

struct ends {
  ends() {
    int both[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, both), 0);
    a = std::make_unique<stream>(both[0], nullptr);
    b = std::make_unique<stream>(both[1], nullptr);
    b->count_in(counts);
  }
  std::unique_ptr<stream> a, b;
  std::shared_ptr<meter> counts = std::make_shared<meter>();
};

class receiving {
 public:
  explicit receiving(std::size_t chunk_max = 1u << 20) : in(chunk_max) {
    in.tell(
        [this](std::span<const std::byte> head, std::uint64_t size) {
          bytes& body = bodies[as_text(head)];
          body.resize(size);
          if (row == 0) return pieces{std::span(body)};
          pieces rows;
          for (std::size_t at = 0; at < size; at += row)
            rows.push_back(std::span(body).subspan(at, std::min<std::size_t>(row, size - at)));
          return rows;
        },
        [this](std::span<const std::byte> head, bool whole) { ended[as_text(head)] = whole; });
  }
  std::size_t row = 0;
  std::map<std::string, bytes> bodies;
  std::map<std::string, bool> ended;
  bulk_in in;
};

/// Text that lz4 can shorten, but not to nothing.
bytes wordy(std::size_t n) {
  bytes b;
  for (unsigned i = 0; b.size() < n; ++i) {
    const bytes line = as_bytes("line " + std::to_string(i * 7919 % 10007) + " of a text that repeats itself; ");
    b.insert(b.end(), line.begin(), line.end());
  }
  b.resize(n);
  return b;
}

/// Sends over a link of so many bytes a second, in a time of its own, and receives; the bytes of the wire.
std::uint64_t send_over(double bytes_a_second, const bytes& body, std::size_t row_out, receiving& to) {
  ends e;
  std::chrono::steady_clock::time_point now{};
  bulk_out out(1u << 20, [&] { return now; });
  const_pieces rows;
  for (std::size_t at = 0; at < body.size(); at += row_out)
    rows.push_back(std::span(body).subspan(at, std::min(row_out, body.size() - at)));
  bool done = false;
  out.add({as_bytes("body"), rows, [&](bool ok) { done = ok; }});
  while (!to.ended.contains("body")) {
    out.step(*e.a, 1u << 20);
    const std::uint64_t before = e.counts->received;
    to.in.step(*e.b, 1u << 20);
    now += std::chrono::nanoseconds(
        static_cast<std::int64_t>(static_cast<double>(e.counts->received - before) / bytes_a_second * 1e9));
  }
  EXPECT_TRUE(done);
  EXPECT_TRUE(to.ended["body"]);
  EXPECT_TRUE(to.bodies["body"] == body);
  return e.counts->received;
}

TEST(bulk_packing, makes_less_of_what_can_be_shortened_on_a_slow_link) {
  receiving r;
  const bytes body = wordy(64u << 20);
  EXPECT_LT(send_over(10e6, body, body.size(), r), body.size() * 3 / 4);
}

TEST(bulk_packing, works_from_and_into_rows) {
  for (const std::size_t row : {3'000u, 200'000u}) {
    receiving r;
    r.row = row + 77;
    const bytes body = wordy(32u << 20);
    EXPECT_LT(send_over(10e6, body, row, r), body.size() * 9 / 10);
  }
}

TEST(bulk_packing, leaves_alone_what_cannot_be_shortened) {
  receiving r;
  const bytes body = noise(32u << 20, 1);
  const auto wire = send_over(10e6, body, body.size(), r);
  EXPECT_GE(wire, body.size());
  EXPECT_LT(wire, body.size() + 64 * 1024);
}

TEST(bulk_packing, is_chosen_by_what_was_measured) {
  using way = packing_choice::way;
  packing_choice c;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(c.next(), way::plain) << "nothing is known of the link";
  c.wrote(8u << 20, 0.1);  // 84 MB/s
  while (c.next() != way::sample_first) {
  }
  c.packed(1000, 500, 1000 / 500e6);  // half, at 500 MB/s
  EXPECT_EQ(c.next(), way::packed);
  c.packed(1000, 990, 1000 / 500e6);  // the text has ended
  EXPECT_EQ(c.next(), way::plain);
  // A link that is faster than compressing is.
  for (int i = 0; i < 20; ++i) c.wrote(8u << 20, 0.002);
  int plain = 0;
  for (int samples = 0; samples < 12;) {
    if (c.next() == way::sample_first) {
      ++samples;
      c.packed(1000, 500, 1000 / 500e6);
    } else {
      ++plain;
    }
  }
  EXPECT_GT(plain, 1000) << "samples that never pay become rare";
}

TEST(chunk_hash, is_xxh3_however_it_is_computed) {
  for (const std::size_t n : {0u, 1u, 17u, 240u, 241u, 5'000u, 300'000u}) {
    const bytes b = noise(n, 3);
    chunk_hash h;
    for (std::size_t at = 0; at < n; at += 777) h.add(std::span(b).subspan(at, std::min<std::size_t>(777, n - at)));
    EXPECT_EQ(h.value(), chunk_hash::of(b)) << n;
  }
  // The sum of nothing, as its authors publish it.
  EXPECT_EQ(chunk_hash::of({}), 0x2d06800538d394c2u);
}

class malformed : public ::testing::Test {
 protected:
  void say(const chunk_header& h, const bytes& what = {}) {
    writer w;
    h.write(w);
    w.raw(what.data(), what.size());
    std::span<const std::byte> left = w.view();
    while (!left.empty()) {
      const moved m = e_.a->write(left.data(), left.size());
      if (m.what == outcome::moved) left = left.subspan(m.bytes);
      r_.in.step(*e_.b, 1u << 20);
    }
    r_.in.step(*e_.b, 1u << 20);
  }
  static chunk_header begin(std::uint64_t number, std::uint64_t size) {
    return {.what = part::begin, .transfer = number, .offset = size, .hash = chunk_hash::of({})};
  }
  static chunk_header chunk(std::uint64_t number, std::uint64_t at, const bytes& raw) {
    const auto n = static_cast<std::uint32_t>(raw.size());
    return {.transfer = number, .offset = at, .raw = n, .stored = n, .hash = chunk_hash::of(raw)};
  }
  void refused(const chunk_header& h, const bytes& what, const std::string& why) {
    try {
      say(h, what);
      ADD_FAILURE() << "believed: " << why;
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::protocol_error);
      EXPECT_NE(std::string(e.what()).find(why), std::string::npos) << e.what();
    }
  }

  ends e_;
  receiving r_{4096};
};

TEST_F(malformed, what_is_said_rightly_arrives) {
  const bytes body = noise(5000, 1);
  const bytes first(body.begin(), body.begin() + 4096), second(body.begin() + 4096, body.end());
  say(begin(1, 5000));
  say(chunk(1, 0, first), first);
  say(chunk(1, 4096, second), second);
  EXPECT_TRUE(r_.ended[""]);
  EXPECT_TRUE(r_.bodies[""] == body);
}

TEST_F(malformed, a_wrong_checksum) {
  const bytes body = noise(100, 1);
  say(begin(1, 100));
  auto h = chunk(1, 0, body);
  h.hash ^= 1;
  refused(h, body, "checksum");
  r_.in.abort();
  EXPECT_FALSE(r_.ended.at(""));
}

TEST_F(malformed, a_wrong_checksum_of_the_head) {
  auto h = begin(1, 100);
  h.hash ^= 1;
  refused(h, {}, "checksum");
}

TEST_F(malformed, a_chunk_of_no_transfer) {
  refused(chunk(7, 0, noise(10, 1)), noise(10, 1), "none that is under way");
}

TEST_F(malformed, a_chunk_at_another_place) {
  say(begin(1, 100));
  refused(chunk(1, 50, noise(10, 1)), noise(10, 1), "does not follow");
}

TEST_F(malformed, a_chunk_beyond_the_end) {
  say(begin(1, 100));
  refused(chunk(1, 0, noise(101, 1)), noise(101, 1), "size of a chunk");
}

TEST_F(malformed, a_chunk_larger_than_allowed) {
  say(begin(1, 10000));
  refused(chunk(1, 0, noise(4097, 1)), noise(4097, 1), "size of a chunk");
}

TEST_F(malformed, a_number_used_before) {
  say(begin(3, 10));
  refused(begin(3, 10), {}, "number");
}

TEST_F(malformed, more_transfers_than_allowed) {
  for (unsigned i = 1; i <= transfers_max; ++i) say(begin(i, 10));
  refused(begin(transfers_max + 1, 10), {}, "too many");
}

TEST_F(malformed, a_head_that_is_too_long) {
  auto h = begin(1, 10);
  h.raw = h.stored = head_max + 1;
  refused(h, {}, "head");
}

TEST_F(malformed, no_part_that_is_known) {
  auto h = begin(1, 10);
  h.what = static_cast<part>(10);
  refused(h, {}, "makes no sense");
}

TEST_F(malformed, a_note_where_nobody_has_a_fabric) {
  auto h = begin(1, 10);
  h.what = part::take;
  refused(h, {}, "nobody understands");
}

TEST_F(malformed, a_note_that_is_long_or_not_what_its_checksum_says) {
  int told = 0;
  r_.in.tell([](auto...) { return pieces{}; }, [](auto...) {}, [&](auto...) { ++told; });
  const bytes content = noise(100, 1);
  chunk_header h{.what = part::fabric, .raw = 100, .stored = 100, .hash = chunk_hash::of(content)};
  say(h, content);
  EXPECT_EQ(told, 1);
  h.hash ^= 1;
  refused(h, content, "checksum of a note");
  EXPECT_EQ(told, 1);
}

TEST_F(malformed, a_note_that_is_longer_than_any) {
  r_.in.tell([](auto...) { return pieces{}; }, [](auto...) {}, [](auto...) {});
  refused({.what = part::fabric, .raw = 16385, .stored = 16385}, {}, "a note is too long");
}

TEST_F(malformed, a_bomb_that_unpacks_to_more_than_it_says) {
  const bytes zeros(1u << 20);
  bytes packed(zeros.size());
  packed.resize(pack(zeros, packed));
  ASSERT_GT(packed.size(), 0u);
  say(begin(1, 1u << 20));
  chunk_header h{.how = packing::lz4, .transfer = 1, .raw = 1u << 20, .hash = 0};
  h.stored = static_cast<std::uint32_t>(packed.size());
  refused(h, packed, "size of a chunk");  // more than a chunk may have
}

TEST_F(malformed, what_does_not_unpack_to_its_size) {
  const bytes zeros(5000);
  bytes packed(zeros.size());
  packed.resize(pack(zeros, packed));
  say(begin(1, 4096));
  chunk_header h{.how = packing::lz4, .transfer = 1, .raw = 4096, .hash = chunk_hash::of(bytes(4096))};
  h.stored = static_cast<std::uint32_t>(packed.size());
  refused(h, packed, "does not unpack");
}

TEST_F(malformed, what_is_packed_to_more_than_it_was) {
  say(begin(1, 4096));
  refused({.how = packing::lz4, .transfer = 1, .raw = 100, .stored = 100}, bytes(100), "on the wire");
}

TEST_F(malformed, noise) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    ends e;
    receiving r(4096);
    const bytes b = noise(200, seed);
    ASSERT_EQ(e.a->write(b.data(), b.size()).bytes, b.size());
    EXPECT_THROW(r.in.step(*e.b, 1u << 20), error) << seed;
  }
}

TEST(bulk_in, says_how_much_of_a_chunk_is_still_to_come) {
  ends e;
  bulk_out out(1u << 20);
  receiving to;
  const bytes body = noise(100'000, 1);
  out.add({as_bytes("body"), {std::span(body)}, [](bool) {}});
  ASSERT_EQ(out.step(*e.a, 1u << 20), outcome::moved);
  ASSERT_TRUE(out.idle());
  const std::uint64_t first = 2 * chunk_header::bytes + 4;  // with the head
  EXPECT_EQ(to.in.outstanding(), chunk_header::bytes);
  // Half of it comes: what is on the wire is taken off and put on again in two parts.
  bytes wire(first + body.size());
  for (std::size_t at = 0; at < wire.size();) at += e.b->read(wire.data() + at, wire.size() - at).bytes;
  ASSERT_EQ(e.a->write(wire.data(), first + 40'000).bytes, first + 40'000);
  EXPECT_EQ(to.in.step(*e.b, 1u << 20), outcome::wants_read);
  EXPECT_EQ(to.in.outstanding(), 60'000u);
  ASSERT_EQ(e.a->write(wire.data() + first + 40'000, 60'000).bytes, 60'000u);
  EXPECT_EQ(to.in.step(*e.b, 1u << 20), outcome::wants_read);
  EXPECT_EQ(to.in.outstanding(), chunk_header::bytes);
  EXPECT_TRUE(to.bodies["body"] == body);
}

}  // namespace
