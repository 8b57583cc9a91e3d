// What this file is for: what nodes say to each other survives the wire, and what is not whole is refused.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/wire/task_messages.hpp"

#include <gtest/gtest.h>

#include <troupe/view.hpp>

#include "broken_messages.hpp"

namespace troupe::detail::wire {
namespace {

std::vector<std::byte> some_bytes(std::size_t n) {
  std::vector<std::byte> all(n);
  for (std::size_t i = 0; i < n; ++i) all[i] = static_cast<std::byte>(i * 7 + 1);
  return all;
}

tasks an_example() {
  tasks t;
  array_descriptor& a = t.arrays.emplace_back();
  a.id = 1234567890123;
  a.rank = 2;
  a.size = {1000, 700, 1, 1};
  a.tile = {100, 64, 1, 1};
  a.element = 8;
  a.align = 16;
  a.name = "picture";
  task_descriptor& one = t.all.emplace_back();
  one.id = 77;
  one.kernel = 0xfedcba9876543210;
  one.name = "blur";
  one.priority = -3;
  one.retries = 2;
  one.watched = true;
  one.resources = {{"licence", 2}, {"bytes", 1.5e9}};
  access_descriptor& x = one.accesses.emplace_back();
  x.array = a.id;
  x.mode = access_mode::read;
  x.where.lo = {-1, 63, 0, 0};
  x.where.hi = {101, 129, 1, 1};
  x.limit.hi = a.size;
  x.edge = border::fill;
  x.fill[0] = std::byte{9};
  x.gaps.push_back({.tile = 5, .where = {{0, 63, 0, 0}, {100, 64, 1, 1}}, .pushed = 300});
  x.gaps.push_back(
      {6, {{0, 64, 0, 0}, {100, 128, 1, 1}}, {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 255}}, 77});
  x.gaps.push_back({.tile = 7, .where = {{0, 0, 0, 0}, {1, 3, 1, 1}}, .bytes = some_bytes(24)});
  access_descriptor& y = one.accesses.emplace_back();
  y.array = a.id;
  y.mode = access_mode::reduce;
  y.returns = y.fresh = true;
  y.fill[31] = std::byte{1};
  y.group = 300;
  y.op = 0x128;
  access_descriptor& z = one.accesses.emplace_back();
  z.array = a.id;
  z.mode = access_mode::write;
  z.copied = true;
  one.values.push_back({std::byte{1}, std::byte{2}, std::byte{3}});
  one.values.emplace_back();
  return t;
}

TEST(node_messages, tasks_come_out_as_they_went_in) {
  const tasks t = an_example();
  net::writer w;
  put(w, t);
  EXPECT_EQ(kind_of(w.view()), kind::tasks);
  net::reader r(w.view().subspan(1));
  const tasks u = take_tasks(r);
  ASSERT_EQ(u.arrays.size(), 1u);
  EXPECT_EQ(u.arrays[0].id, t.arrays[0].id);
  EXPECT_EQ(u.arrays[0].size, t.arrays[0].size);
  EXPECT_EQ(u.arrays[0].tile, t.arrays[0].tile);
  EXPECT_EQ(u.arrays[0].element, 8u);
  EXPECT_EQ(u.arrays[0].name, "picture");
  ASSERT_EQ(u.all.size(), 1u);
  const task_descriptor &a = t.all[0], &b = u.all[0];
  EXPECT_EQ(b.id, a.id);
  EXPECT_EQ(b.kernel, a.kernel);
  EXPECT_EQ(b.name, a.name);
  EXPECT_EQ(b.priority, a.priority);
  EXPECT_EQ(b.retries, a.retries);
  EXPECT_EQ(b.watched, a.watched);
  ASSERT_EQ(b.resources.size(), 2u);
  EXPECT_EQ(b.resources[0].name, "licence");
  EXPECT_EQ(b.resources[0].amount, 2);
  EXPECT_EQ(b.resources[1].amount, 1.5e9);
  EXPECT_EQ(b.values, a.values);
  ASSERT_EQ(b.accesses.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(b.accesses[i].copied, i == 2);
    EXPECT_EQ(b.accesses[i].array, a.accesses[i].array);
    EXPECT_EQ(b.accesses[i].mode, a.accesses[i].mode);
    EXPECT_EQ(b.accesses[i].returns, a.accesses[i].returns);
    EXPECT_EQ(b.accesses[i].fresh, a.accesses[i].fresh);
    EXPECT_EQ(b.accesses[i].group, i == 1 ? 300u : 0u);
    EXPECT_EQ(b.accesses[i].op, i == 1 ? 0x128 : 0);
    EXPECT_EQ(b.accesses[i].where, a.accesses[i].where);
    EXPECT_EQ(b.accesses[i].limit, a.accesses[i].limit);
    EXPECT_EQ(b.accesses[i].edge, a.accesses[i].edge);
    EXPECT_EQ(b.accesses[i].fill, a.accesses[i].fill);
  }
  ASSERT_EQ(b.accesses[0].gaps.size(), 3u);
  EXPECT_TRUE(b.accesses[0].gaps[0].bytes.empty());
  EXPECT_EQ(b.accesses[0].gaps[2].bytes, some_bytes(24));
  EXPECT_EQ(b.accesses[0].gaps[1].tile, 6u);
  EXPECT_EQ(b.accesses[0].gaps[1].where, a.accesses[0].gaps[1].where);
  EXPECT_EQ(b.accesses[0].gaps[0].lent, 0u);
  EXPECT_EQ(b.accesses[0].gaps[0].pushed, 300u);
  EXPECT_EQ(b.accesses[0].gaps[1].pushed, 0u);
  EXPECT_EQ(b.accesses[0].gaps[1].lent, 77u);
  EXPECT_EQ(b.accesses[0].gaps[1].from, a.accesses[0].gaps[1].from);
}

TEST(node_messages, boxes_to_be_filled_come_out_as_they_went_in) {
  const std::vector<gap> all = an_example().all.at(0).accesses.at(0).gaps;
  net::writer w;
  w.varint(300);
  for (const gap& g : all) put(w, g);
  net::reader r(w.view());
  const gaps g = take_gaps(r);
  EXPECT_EQ(g.array, 300u);
  ASSERT_EQ(g.all.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(g.all[i].bytes, all[i].bytes);
    EXPECT_EQ(g.all[i].tile, all[i].tile);
    EXPECT_EQ(g.all[i].where, all[i].where);
    EXPECT_EQ(g.all[i].lent, all[i].lent);
    EXPECT_EQ(g.all[i].from, all[i].from);
  }
  test::expect_refuses_or_takes_what_is_changed(w.view(), [](net::reader& changed) { take_gaps(changed); });
}

TEST(node_messages, a_card_names_no_more_kernels_than_its_peer_takes) {
  node_descriptor c{4, 0, true, {}, std::vector<std::uint64_t>(kernels_max + 1, 7)};
  net::writer w;
  put(w, c);
  net::reader r(w.view().subspan(1));
  EXPECT_EQ(take_node_descriptor(r).kernels.size(), kernels_max);
}

TEST(node_messages, pulls_and_their_refusals_come_out_as_they_went_in) {
  const node_id owner{{9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 1, 2, 3, 4, 5, 200}};
  net::writer w;
  put(w, pull_request{owner, 1000, 7, {{0, -1, 2, 3}, {4, 5, 6, 7}}});
  net::reader r(w.view().subspan(1));
  const pull_request p = take_pull(r);
  EXPECT_EQ(p.owner, owner);
  EXPECT_EQ(p.lent, 1000u);
  EXPECT_EQ(p.number, 7u);
  EXPECT_EQ(p.where.lo[1], -1);
  EXPECT_EQ(p.where.hi[3], 7);
  EXPECT_EQ(kind_of(w.view()), kind::pull);
  w.clear();
  put(w, pull_refusal{owner, 1000, 5, "gone"});
  net::reader q(w.view().subspan(1));
  const pull_refusal f = take_pull_refusal(q);
  EXPECT_EQ(f.owner, owner);
  EXPECT_EQ(f.lent, 1000u);
  EXPECT_EQ(f.number, 5u);
  EXPECT_EQ(f.text, "gone");
  w.clear();
  put(w, pulled_head{7, owner, 1000});
  EXPECT_EQ(kind_of(w.view()), kind::bytes_pulled);
  const pulled_head h = take_pulled_head(w.view());
  EXPECT_EQ(h.number, 7u);
  EXPECT_EQ(h.owner, owner);
  EXPECT_EQ(h.lent, 1000u);
}

TEST(node_messages, ends_and_requests_come_out_as_they_went_in) {
  net::writer w;
  put(w, task_end{.id = 5,
                  .how = outcome::ran,
                  .measured_ns = 12.5f,
                  .attempts = 4,
                  .written = {{0, some_bytes(inline_max)}, {3, some_bytes(1)}},
                  .in_sum = true});
  put(w, task_end{.id = 6, .how = outcome::failed, .attempts = 3, .code = errc::out_of_memory, .text = "no room"});
  net::reader r(w.view());
  const auto ends = take_done(r);
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[0].measured_ns, 12.5f);
  EXPECT_EQ(ends[0].attempts, 4);
  ASSERT_EQ(ends[0].written.size(), 2u);
  EXPECT_EQ(ends[0].written[1].access, 3u);
  EXPECT_EQ(ends[0].written[0].bytes, some_bytes(inline_max));
  EXPECT_EQ(ends[0].written[1].bytes, some_bytes(1));
  EXPECT_TRUE(ends[0].in_sum);
  EXPECT_TRUE(ends[1].written.empty());
  EXPECT_EQ(ends[1].code, errc::out_of_memory);
  EXPECT_EQ(ends[1].attempts, 3);
  EXPECT_EQ(ends[1].text, "no room");
  for (const task_end& bad :
       {task_end{.how = outcome::ran, .attempts = 0}, task_end{.how = outcome::ran, .attempts = -1},
        task_end{.how = outcome::not_run, .attempts = -1}}) {
    w.clear();
    put(w, bad);
    net::reader wrong(w.view());
    EXPECT_THROW(take_done(wrong), error);
  }
  w.clear();
  put(w, box_request{9, 8, {7, {{1, 2, 3, 4}, {5, 6, 7, 8}}}});
  net::reader q(w.view());
  const auto requests = take_requests(q);
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].number, 9u);
  EXPECT_EQ(requests[0].what.where.hi[3], 8);
}

TEST(node_messages, bytes_come_from_one_place_and_what_has_been_sent_is_not_asked_for) {
  tasks t = an_example();
  t.all[0].accesses[0].gaps[1].pushed = 5;  // and it is lent
  net::writer w;
  put(w, t);
  net::reader r(w.view().subspan(1));
  EXPECT_THROW(take_tasks(r), error);
  w.clear();
  put(w, box_request{9, 8, {.tile = 7, .where = {{1, 2, 3, 4}, {5, 6, 7, 8}}, .pushed = 5}});
  net::reader q(w.view());
  EXPECT_THROW(take_requests(q), error);
}

TEST(node_messages, bytes_inside_come_by_no_other_way_and_are_few) {
  const auto refuses = [](const auto& change) {
    tasks t = an_example();
    change(t.all[0].accesses[0].gaps);
    net::writer w;
    put(w, t);
    net::reader r(w.view().subspan(1));
    EXPECT_THROW(take_tasks(r), error);
  };
  refuses([](auto& gaps) { gaps[0].bytes = some_bytes(1); });  // and it is pushed
  refuses([](auto& gaps) { gaps[1].bytes = some_bytes(1); });  // and it is lent
  refuses([](auto& gaps) { gaps[2].bytes = some_bytes(inline_max + 1); });
  refuses([](auto& gaps) {
    for (std::size_t sum = 0; sum <= inline_task_max; sum += inline_max)
      gaps.push_back({.tile = 7, .where = {{0, 0, 0, 0}, {1, 512, 1, 1}}, .bytes = some_bytes(inline_max)});
  });
  net::writer w;
  const auto refuses_end = [&](std::vector<written_box> written) {
    w.clear();
    put(w, task_end{.how = outcome::ran, .written = std::move(written)});
    net::reader r(w.view());
    EXPECT_THROW(take_done(r), error);
  };
  refuses_end({{0, some_bytes(inline_max + 1)}});
  refuses_end({{0, {}}});
  refuses_end({{1, some_bytes(1)}, {1, some_bytes(1)}});
  refuses_end({{1, some_bytes(1)}, {0, some_bytes(1)}});
  std::vector<written_box> many;
  for (std::uint32_t i = 0; i <= inline_task_max / inline_max; ++i) many.push_back({i, some_bytes(inline_max)});
  refuses_end(many);
  w.clear();
  put(w, box_request{9, 8, {.tile = 7, .where = {{1, 2, 3, 4}, {5, 6, 7, 8}}, .bytes = some_bytes(1)}});
  net::reader q(w.view());
  EXPECT_THROW(take_requests(q), error) << "a request for what is here";
}

TEST(node_messages, what_ends_too_early_is_refused_wherever_it_ends) {
  net::writer w;
  put(w, an_example());
  test::expect_refuses_what_is_cut_off(w.view(), [](net::reader& r) { take_tasks(r); });
}

TEST(node_messages, any_change_of_a_byte_is_refused_or_harmless) {
  net::writer w;
  put(w, an_example());
  test::expect_refuses_or_takes_what_is_changed(w.view(), [](net::reader& r) {
    const tasks t = take_tasks(r);
    for (const task_descriptor& one : t.all)
      for (const access_descriptor& x : one.accesses)
        for (int d = 0; d < rank_max; ++d) ASSERT_LE(x.where.lo[d], x.where.hi[d]);
  });
}

TEST(node_messages, arrays_whose_elements_want_more_than_views_are_aligned_to_are_refused) {
  for (const std::uint64_t align : {element_align_max, 2 * element_align_max}) {
    tasks t = an_example();
    t.arrays[0].align = align;
    net::writer w;
    put(w, t);
    net::reader r(w.view().subspan(1));
    if (align == element_align_max)
      EXPECT_EQ(take_tasks(r).arrays[0].align, align);
    else
      EXPECT_THROW(take_tasks(r), error);
  }
}

TEST(node_messages, a_length_that_promises_more_than_there_is_takes_no_memory) {
  net::writer w;
  w.varint(~std::uint64_t{0});  // arrays
  net::reader r(w.view());
  EXPECT_THROW(take_tasks(r), error);
  w.clear();
  w.varint(1);
  w.varint(1u << 20);
  w.varint(1);
  net::reader c(w.view());
  EXPECT_THROW(take_node_descriptor(c), error);
}

}  // namespace
}  // namespace troupe::detail::wire
