// What this file is for: transfers through a fabric, step by step: what counts when, and what must not be believed.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "conformance.hpp"
#include "net/tcp/fabric_in.hpp"
#include "net/tcp/fabric_out.hpp"

namespace {

using namespace troupe::net;
using namespace troupe::net::tcp;
using wires::as_bytes;
using wires::as_text;
using wires::bytes;
using wires::noise;

struct receiving {
  receiving() {
    in.tell(
        [this](std::span<const std::byte> head, std::uint64_t size) -> pieces {
          if (as_text(head) == "unwanted") return {};
          body.resize(size);
          if (row == 0) return {std::span(body)};
          pieces rows;
          for (std::size_t at = 0; at < size; at += row)
            rows.push_back(std::span(body).subspan(at, std::min<std::size_t>(row, size - at)));
          return rows;
        },
        [this](std::span<const std::byte> head, bool whole) { ended[as_text(head)] = whole; },
        [this](part what, std::uint64_t, std::uint64_t, std::span<const std::byte>) { said.push_back(what); });
  }
  void put(std::uint64_t transfer, std::uint64_t offset, const bytes& part) {
    const auto to = in.destination(transfer, offset, part.size());
    std::copy(part.begin(), part.end(), to.begin());
    in.placed(transfer, offset);
  }
  std::size_t row = 0;
  bytes body;
  std::map<std::string, bool> ended;
  std::vector<part> said;
  fabric_in in;
};

TEST(fabric_parts, count_only_when_their_memory_was_kept_until_they_were_read) {
  receiving r;
  const bytes part_of = noise(1000, 1);
  r.in.offered(1, 2000, as_bytes("a"));
  r.put(1, 0, part_of);
  EXPECT_EQ(r.said, std::vector{part::take});
  r.put(1, 1000, part_of);
  EXPECT_EQ(r.said, (std::vector{part::take, part::have}));
  EXPECT_TRUE(r.ended.empty()) << "the sender may have given the memory back while it was read";
  r.in.kept(1);
  EXPECT_EQ(r.ended, (std::map<std::string, bool>{{"a", true}}));
}

TEST(fabric_parts, that_are_there_but_not_confirmed_are_not_whole_at_the_end) {
  receiving r;
  r.in.offered(1, 1000, as_bytes("a"));
  r.put(1, 0, noise(1000, 1));
  r.in.abort();
  EXPECT_EQ(r.ended, (std::map<std::string, bool>{{"a", false}}));
}

TEST(fabric_parts, go_where_they_belong_in_many_pieces) {
  receiving r;
  r.row = 300;
  const bytes all = noise(2000, 1);
  r.in.offered(1, 2000, as_bytes("a"));
  r.put(1, 0, {all.begin(), all.begin() + 300});
  r.put(1, 300, {all.begin() + 300, all.begin() + 1500});
  r.put(1, 1500, {all.begin() + 1500, all.end()});
  EXPECT_TRUE(r.body == all);
}

TEST(fabric_parts, of_what_nobody_wants_are_not_asked_for) {
  receiving r;
  r.in.offered(1, 1000, as_bytes("unwanted"));
  EXPECT_EQ(r.said, std::vector{part::leave});
  EXPECT_EQ(r.ended.count("unwanted"), 1u);
  EXPECT_THROW(r.in.destination(1, 0, 1000), troupe::error);
}

TEST(fabric_parts, that_make_no_sense_are_refused) {
  receiving r;
  EXPECT_THROW(r.in.destination(1, 0, 10), troupe::error) << "of no transfer";
  r.in.offered(5, 1000, as_bytes("a"));
  EXPECT_THROW(r.in.offered(5, 1000, as_bytes("b")), troupe::error) << "its number has been used";
  EXPECT_THROW(r.in.offered(6, 0, as_bytes("b")), troupe::error) << "nothing";
  EXPECT_THROW(r.in.offered(6, 1000, noise(4097, 1)), troupe::error) << "a long head";
  EXPECT_THROW(r.in.destination(5, 100, 10), troupe::error) << "not the first";
  EXPECT_THROW(r.in.destination(5, 0, 1001), troupe::error) << "more than there is to be";
  EXPECT_THROW(r.in.destination(5, 0, 0), troupe::error) << "nothing";
  EXPECT_THROW(r.in.kept(5), troupe::error) << "not there yet";
  EXPECT_THROW(r.in.kept(6), troupe::error) << "of no transfer";
  for (std::uint64_t i = 6; i < 13; ++i) r.in.offered(i, 1000, as_bytes("many"));
  EXPECT_THROW(r.in.offered(13, 1000, as_bytes("too many")), troupe::error);
  r.put(5, 0, noise(1000, 1));
  EXPECT_THROW(r.in.destination(5, 1000, 1), troupe::error) << "behind the end";
}

struct sending {
  sending() {
    out.tell([this](part what, std::uint64_t transfer, std::uint64_t,
                    std::span<const std::byte>) { said.emplace_back(what, transfer); },
             [this](std::uint64_t transfer, std::uint64_t offset, std::span<const std::byte> body) {
               parts.emplace_back(transfer, offset, body.size());
             });
  }
  void add(const bytes& body, std::size_t row = 0) {
    const_pieces rows;
    for (std::size_t at = 0; at < body.size(); at += row == 0 ? body.size() : row)
      rows.push_back(std::span(body).subspan(at, std::min(row == 0 ? body.size() : row, body.size() - at)));
    out.add({as_bytes("head"), rows, [this](bool ok) { answers.push_back(ok); }});
  }
  /// The peer reads what is under way; how many parts that were.
  std::size_t read_all() {
    std::size_t n = 0;
    for (; n < parts.size(); ++n) out.sent(std::get<0>(parts[n]), std::get<1>(parts[n]));
    parts.clear();
    return n;
  }
  std::vector<std::pair<part, std::uint64_t>> said;
  std::vector<std::tuple<std::uint64_t, std::uint64_t, std::size_t>> parts;
  std::vector<bool> answers;
  fabric_out out;
};

TEST(fabric_parts, are_sent_when_asked_for_few_at_once_and_answered_for_when_the_peer_has_them) {
  sending s;
  const bytes body = noise(40u << 20, 1);
  s.add(body);
  EXPECT_TRUE(s.parts.empty()) << "nobody has memory for them yet";
  s.out.taken(1);
  EXPECT_EQ(s.parts.size(), 3u);
  std::size_t all = 0;
  while (!s.parts.empty()) {
    const auto now = s.parts;
    s.parts.clear();
    for (const auto& [transfer, offset, size] : now) {
      EXPECT_EQ(offset, all);
      all += size;
      EXPECT_EQ(s.out.sent(transfer, offset), size);
    }
  }
  EXPECT_EQ(all, body.size());
  EXPECT_TRUE(s.answers.empty());
  s.out.had(1);
  EXPECT_EQ(s.answers, std::vector{true});
  EXPECT_EQ(s.said.back(), (std::pair{part::kept, std::uint64_t{1}}));
}

TEST(fabric_parts, keep_their_memory_until_nobody_reads_it_whatever_the_peer_says) {
  sending s;
  const bytes body = noise(1u << 20, 1);
  s.add(body);
  s.out.taken(1);
  s.out.had(1);
  EXPECT_TRUE(s.answers.empty());
  s.read_all();
  EXPECT_EQ(s.answers, std::vector{true});
}

TEST(fabric_parts, of_small_pieces_are_gathered) {
  sending s;
  const bytes body = noise(1u << 20, 1);
  s.add(body, 100);
  s.out.taken(1);
  EXPECT_EQ(s.parts.size(), 2u);
}

TEST(fabric_parts, of_a_short_transfer_do_not_wait_for_a_long_one) {
  sending s;
  const bytes large = noise(200u << 20, 1), small = noise(1u << 20, 2);
  s.add(large);
  s.out.taken(1);
  s.add(small);
  s.out.taken(2);
  s.out.sent(1, 0);
  EXPECT_EQ(std::get<0>(s.parts.back()), 1u) << "it was its turn";
  s.out.sent(1, 4u << 20);
  EXPECT_EQ(std::get<0>(s.parts.back()), 2u);
}

TEST(fabric_parts, that_will_not_be_sent_are_answered_for) {
  sending s;
  const bytes body = noise(1u << 20, 1);
  for (int i = 0; i < 12; ++i) s.add(body);
  EXPECT_EQ(s.said.size(), 8u) << "no more than that at once";
  s.out.taken(1);
  s.out.left(2);
  EXPECT_EQ(s.answers, std::vector{true});
  s.out.abort();
  EXPECT_EQ(s.answers.size(), 12u);
  EXPECT_EQ(std::count(s.answers.begin(), s.answers.end(), false), 11);
}

TEST(fabric_parts, answers_that_make_no_sense_are_refused) {
  sending s;
  const bytes body = noise(20u << 20, 1);
  EXPECT_THROW(s.out.taken(1), troupe::error);
  s.add(body);
  EXPECT_THROW(s.out.had(1), troupe::error);
  s.out.taken(1);
  EXPECT_THROW(s.out.taken(1), troupe::error);
  EXPECT_THROW(s.out.left(1), troupe::error);
  EXPECT_THROW(s.out.had(1), troupe::error) << "not all of it has been sent";
}

}  // namespace
