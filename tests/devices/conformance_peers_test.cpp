// What this file is for: copies from another device's memory, where there is a way; refusal where there is none.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <chrono>
#include <numeric>

#include "conformance.hpp"
#include "devices/calibration/links.hpp"

namespace conformance_suite {

namespace {

class conformance_peers : public conformance {
 protected:
  void SetUp() override {
    conformance::SetUp();
    if (IsSkipped()) return;
    here_ = open(0);
    there_ = open(GetParam().devices > 1 ? 1 : 0);  // else two uses of one device
  }
  bool connect() { return here_->connect(there_->facts()) && there_->connect(here_->facts()); }

  std::unique_ptr<accelerator> here_, there_;
};

TEST_P(conformance_peers, all_of_a_block_comes_from_the_other_device) {
  if (!connect()) GTEST_SKIP() << "no way from " << there_->facts().name << " to " << here_->facts().name;
  constexpr std::size_t n = 100'000;
  std::vector<int> data(n);
  std::iota(data.begin(), data.end(), 1);
  const block from(*there_, n * sizeof(int)), to(*here_, n * sizeof(int));
  put(*there_, 0, from.at(), data);
  finish(*there_);
  here_->copy_from(0, to.at(), line(), there_->facts(), from.at(), line(), line_of(n), sizeof(int));
  EXPECT_EQ(content<int>(*here_, to.at(), n), data);
}

TEST_P(conformance_peers, a_part_comes_at_other_strides) {
  if (!connect()) GTEST_SKIP() << "no way from " << there_->facts().name << " to " << here_->facts().name;
  constexpr index_t rows = 20, columns = 30, wide = 50;
  std::vector<int> data(rows * wide);
  std::iota(data.begin(), data.end(), 0);
  const block from(*there_, data.size() * sizeof(int)), to(*here_, rows * columns * sizeof(int));
  put(*there_, 0, from.at(), data);
  finish(*there_);
  here_->wait(1, 0, here_->record(0, false));  // the room for it
  here_->copy_from(1, to.at(), {0, 0, columns, 1}, there_->facts(), from.at(7 * sizeof(int)), {0, 0, wide, 1},
                   {1, 1, rows, columns}, sizeof(int));
  finish(*here_, 1);
  const auto got = content<int>(*here_, to.at(), rows * columns);
  for (index_t y = 0; y < rows; ++y)
    for (index_t x = 0; x < columns; ++x)
      ASSERT_EQ(got[static_cast<std::size_t>(y * columns + x)], y * wide + x + 7) << y << ',' << x;
}

TEST_P(conformance_peers, a_copy_stands_in_its_lane_like_any_other) {
  if (!connect()) GTEST_SKIP() << "no way from " << there_->facts().name << " to " << here_->facts().name;
  constexpr std::size_t n = 50'000;
  const block from(*there_, n * sizeof(int)), to(*here_, n * sizeof(int));
  fill(*there_, 0, from.at(), 5, n);
  finish(*there_);
  fill(*here_, 0, to.at(), 1, n);
  here_->copy_from(0, to.at(), line(), there_->facts(), from.at(), line(), line_of(n), sizeof(int));
  here_->wait(1, 0, here_->record(0, false));
  EXPECT_EQ(content<int>(*here_, to.at(), n, 1), std::vector<int>(n, 5));
}

TEST_P(conformance_peers, nothing_is_copied_without_a_connection) {
  const block from(*there_, 64), to(*here_, 64);
  std::string said;
  EXPECT_EQ(
      thrown([&] { here_->copy_from(0, to.at(), line(), there_->facts(), from.at(), line(), line_of(64), 1); }, &said),
      code(errc::bad_argument));
  EXPECT_NE(said.find(there_->facts().name), std::string::npos) << said;
  fill(*here_, 0, to.at(), 3, 16);  // and nothing is wrong with it
  EXPECT_EQ(content<int>(*here_, to.at(), 16), std::vector<int>(16, 3));
}

TEST_P(conformance_peers, the_way_is_measured_where_there_is_one) {
  const bool connected = connect();
  // On a machine that is too busy the answer is that nothing is known, so it is asked again.
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  link_speeds s;
  do
    s = measure_peers(*here_, *there_, std::chrono::milliseconds(200));
  while (connected && !(s.in.known() && s.out.known()) && std::chrono::steady_clock::now() < give_up);
  EXPECT_EQ(s.in.known(), connected);
  EXPECT_EQ(s.out.known(), connected);
  for (const auto& one : {s.in, s.out})
    if (connected) {
      EXPECT_GT(one.latency_ns, 0);
      EXPECT_GT(one.bytes_per_ns, 0.001);
    }
}

TEST_P(conformance_peers, another_kind_of_device_is_no_peer) {
  accelerator_facts other = there_->facts();
  other.kind = other.kind == troupe::device_kind::cuda ? troupe::device_kind::hip : troupe::device_kind::cuda;
  EXPECT_FALSE(here_->connect(other));
}

INSTANTIATE_TEST_SUITE_P(accelerators, conformance_peers, ::testing::ValuesIn(candidates()),
                         [](const auto& of) { return of.param.name; });

}  // namespace

}  // namespace conformance_suite
