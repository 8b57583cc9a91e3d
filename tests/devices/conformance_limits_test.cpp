// What this file is for: every device's opening, absence, facts, and what it does when memory ends.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <deque>
#include <set>

#include "conformance.hpp"

namespace conformance_suite {

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

TEST_P(conformance, a_device_tells_what_it_is) {
  std::set<std::string> names;
  for (int d = 0; d < GetParam().devices; ++d) {
    const auto a = open(d, 3, 8 * mib);
    const auto& f = a->facts();
    EXPECT_EQ(f.kind, source_->kind());
    EXPECT_EQ(f.index, d);
    EXPECT_EQ(f.lanes, 3);
    EXPECT_EQ(f.memory_bytes, 8 * mib);
    EXPECT_GE(f.compute_units, 1);
    EXPECT_NE(f.name.find(':' + std::to_string(d)), std::string::npos) << f.name;
    EXPECT_FALSE(f.model.empty());
    EXPECT_FALSE(f.driver.empty());
    EXPECT_FALSE(f.identity.empty());
    names.insert(f.name);
    for (int l = 0; l < 3; ++l) EXPECT_NE(a->native_lane(l), nullptr) << "lane " << l;
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(GetParam().devices));
  EXPECT_GT(open()->facts().memory_bytes, 8 * mib) << "no limit was asked for";
}

TEST_P(conformance, wrong_calls_are_refused) {
  EXPECT_EQ(thrown([&] { (void)open(-1); }), code(errc::bad_argument));
  EXPECT_EQ(thrown([&] { (void)open(source_->count()); }), code(errc::bad_argument));
  EXPECT_EQ(thrown([&] { (void)open(0, 0); }), code(errc::bad_argument));
  const auto a = open();
  EXPECT_EQ(thrown([&] { (void)a->record(2, false); }), code(errc::bad_argument));
  EXPECT_EQ(thrown([&] { (void)a->completed(-1); }), code(errc::bad_argument));
  EXPECT_EQ(thrown([&] { a->wait(0, 1, 1); }), code(errc::bad_argument)) << "nobody recorded that ticket";
  EXPECT_EQ(thrown([&] { a->wait(0, 5, 0); }), code(errc::bad_argument));
  const block on(*a, 256);
  EXPECT_EQ(thrown([&] { fill(*a, 0, on.at(), std::array<char, 33>{}, 1); }), code(errc::bad_argument));
  fill(*a, 0, on.at(), 5, 64);
  EXPECT_EQ(content<int>(*a, on.at(), 64), std::vector<int>(64, 5)) << "the device goes on";
}

TEST_P(conformance, memory_ends_with_null_and_comes_back) {
  const auto a = open(0, 2, 4 * mib);
  EXPECT_EQ(a->allocate(0, 5 * mib), nullptr);
  EXPECT_EQ(a->allocate(0, ~std::size_t{0}), nullptr);
  for (int round = 0; round < 3; ++round) {
    std::vector<void*> got;
    while (void* p = a->allocate(0, mib)) {
      got.push_back(p);
      ASSERT_LE(got.size(), 4u) << "more than the limit";
    }
    ASSERT_EQ(got.size(), 4u);
    a->deallocate(0, got.back());
    got.back() = a->allocate(0, mib);
    ASSERT_NE(got.back(), nullptr) << "what was given back cannot be had again";
    fill(*a, 0, {got.back(), 0}, 9, mib / 4);
    EXPECT_EQ(content<int>(*a, {got.back(), 0}, mib / 4), std::vector<int>(mib / 4, 9));
    for (void* p : got) a->deallocate(0, p);
  }
}

TEST_P(conformance, blocks_of_memory_do_not_overlap) {
  const auto a = open(0, 2, 4 * mib);
  std::vector<std::unique_ptr<block>> blocks;
  const std::size_t n = 100;
  for (int i = 0; i < 40; ++i) {
    blocks.push_back(std::make_unique<block>(*a, n * 4));
    fill(*a, 0, blocks.back()->at(), i, n);
  }
  for (int i = 0; i < 40; i += 2) blocks[static_cast<std::size_t>(i)].reset();
  for (int i = 0; i < 40; i += 2) {
    blocks[static_cast<std::size_t>(i)] = std::make_unique<block>(*a, n * 4);
    fill(*a, 0, blocks[static_cast<std::size_t>(i)]->at(), 1000 + i, n);
  }
  for (int i = 0; i < 40; ++i)
    EXPECT_EQ(content<int>(*a, blocks[static_cast<std::size_t>(i)]->at(), n),
              std::vector<int>(n, i % 2 ? i : 1000 + i));
}

// The host's memory is four times the device's; memory is given back without waiting for what uses it.
TEST_P(conformance, a_working_set_larger_than_the_memory_passes_through) {
  const std::size_t tile = 32 * 1024, tiles = 32;  // doubles; 8 MiB in all
  std::vector<double> all(tile * tiles);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<double>(i % 1000);
  auto expected = all;
  for (auto& x : expected) x *= 16;
  const auto a = open(0, 2, 2 * mib);
  const kernel_id axpy = load_core(*a, "axpy");
  for (int pass = 0; pass < 4; ++pass)
    for (std::size_t t = 0; t < tiles; ++t) {
      const int l = static_cast<int>(t % 2);
      void* x = nullptr;
      ASSERT_TRUE(eventually([&] { return (x = a->allocate(l, tile * 8)) || (finish(*a, 0), finish(*a, 1), false); }));
      auto* host = reinterpret_cast<std::byte*>(all.data() + t * tile);
      a->copy_in(l, {x, 0}, line(), host, line(), line_of(tile), 8);
      launch_axpy(*a, l, axpy, 1, {x, 0}, {x, 0}, tile);
      a->copy_out(l, host, line(), {x, 0}, line(), line_of(tile), 8);
      a->deallocate(l, x);
    }
  finish(*a, 0);
  finish(*a, 1);
  EXPECT_TRUE(all == expected);
}

// Runs for those that are there, too, of which there is always one more that is not.
class absence : public ::testing::TestWithParam<candidate> {};

TEST_P(absence, is_told_and_not_thrown) {
  const auto source = GetParam().source();
  ASSERT_NE(source, nullptr);
  EXPECT_GE(source->count(), 0);
  EXPECT_TRUE(source->count() > 0 || !source->remark().empty()) << "why is there none?";
  std::string said;
  EXPECT_EQ(thrown([&] { (void)source->open(source->count(), 1, 0); }, &said), code(errc::bad_argument));
  EXPECT_NE(said.find(source->remark()), std::string::npos) << said;
  EXPECT_EQ(GetParam().source()->count(), source->count()) << "asked twice";
}

INSTANTIATE_TEST_SUITE_P(accelerators, absence, ::testing::ValuesIn(candidates()),
                         [](const auto& of) { return of.param.name; });

}  // namespace

}  // namespace conformance_suite
