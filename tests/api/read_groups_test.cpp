// What this file is for: random programs of tasks that read the same lists of arrays give what they give one by one.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include <troupe/troupe.hpp>

namespace {

using namespace troupe;

using number = std::uint64_t;
using troupe::index_t;

// A program on arrays of one number, and what each holds when its tasks run in their order: nothing where the task that
// has written it failed.
class list_program {
 public:
  list_program(runtime& rt, unsigned seed)
      : rt_(rt),
        random_(seed),
        wide_(rt.adopt<number>(std::vector<number>(wide, 1), {wide}, tiles(4))),
        wide_expected_(wide, 1) {
    const std::size_t n = 10 + random_() % 20;
    for (std::size_t i = 0; i < n; ++i) {
      arrays_.push_back(rt_.adopt<number>({i}));
      expected_.push_back(i);
    }
    for (std::vector<std::size_t>& list : lists_) {
      const std::size_t length = 6 + random_() % 12;
      while (list.size() < length) list.push_back(random_() % n);
    }
  }

  void submit(std::size_t tasks) {
    for (std::size_t i = 0; i < tasks; ++i) {
      if (random_() % 24 == 0) list_ = random_() % lists_.size();
      switch (random_() % 18) {
        case 0:
          replace();
          break;
        case 1:
          add();
          break;
        case 2:
          overwrite();
          break;
        default:
          step();
      }
    }
  }

  // Numbers of arrays that do not hold what they should.
  std::vector<std::size_t> wrong() {
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      std::optional<number> got;
      try {
        got = arrays_[i].read()(0);
      } catch (const task_failed&) {
      }
      if (got != expected_[i]) all.push_back(i);
    }
    const auto w = wide_.read();
    for (index_t i = 0; i < wide; ++i)
      if (w(i) != wide_expected_[static_cast<std::size_t>(i)]) all.push_back(1'000 + static_cast<std::size_t>(i));
    return all;
  }

 private:
  std::size_t any() { return random_() % arrays_.size(); }
  std::vector<array<number, 1>> inputs() const {
    std::vector<array<number, 1>> all;
    for (const std::size_t i : lists_[list_]) all.push_back(arrays_[i]);
    return all;
  }
  static number mix(number a, number b) { return (a ^ b) * 0x9e3779b97f4a7c15ull + 1; }

  // Reads a list and writes an array, which may be one of the list's neighbours in any order; now and then it fails.
  void step() {
    const std::size_t to = any();
    for (const std::size_t i : lists_[list_])
      if (i == to) return overwrite();
    const number salt = random_();
    const bool fails = random_() % 64 == 0, spins = random_() % 16 == 0, is_late = random_() % 32 == 0;
    std::optional<number> result = salt;
    for (const std::size_t i : lists_[list_]) {
      if (!expected_[i]) result.reset();
      if (result) *result = mix(*result, *expected_[i]);
    }
    expected_[to] = fails ? std::nullopt : result;
    const auto body = [=](views<const number, 1> in, view<number, 1> out) {
      if (fails) throw std::runtime_error("as wanted");
      number n = salt;
      for (const auto& v : in) n = mix(n, v(0));
      for (int i = 0; spins && i < 2'000; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
      out(0) = n;
    };
    if (is_late)
      rt_.spawn({.priority = -1}, body, read_all(inputs()), write(arrays_[to]));
    else
      rt_.spawn(body, read_all(inputs()), write(arrays_[to]));
  }
  void overwrite() {
    const std::size_t to = any();
    const number salt = random_();
    expected_[to] = salt;
    rt_.spawn([salt](view<number, 1> out) { out(0) = salt; }, write(arrays_[to]));
  }
  // Adds two numbers to what an array holds, as a reduction.
  void add() {
    const std::size_t to = any();
    for (const number n : {number{3}, number{5}}) {
      rt_.spawn([n](view<number, 1> sum) { sum(0) += n; }, reduce(arrays_[to]));
      if (expected_[to]) *expected_[to] += n;
    }
  }
  // Each chunk reads all of an array in tiles; then another loop writes it, in chunks that need not be its tiles.
  void mix_all() {
    auto sums = rt_.array<number>({wide}, tiles(4));
    const std::vector<number> before = wide_expected_;
    number all = 0;
    for (const number n : before) all = mix(all, n);
    rt_.for_each(
        grid(wide).chunks(4),
        [](view<const number, 1> in, view<number, 1> out) {
          number n = 0;
          for (index_t i = 0; i < wide; ++i) n = mix(n, in(i));
          for (index_t i = out.lo(0); i < out.hi(0); ++i) out(i) = mix(n, static_cast<number>(i));
        },
        read(wide_, troupe::all{}), write(sums));
    for (index_t i = 0; i < wide; ++i) wide_expected_[static_cast<std::size_t>(i)] = mix(all, static_cast<number>(i));
    rt_.for_each(
        grid(wide).chunks(random_() % 2 == 0 ? 4 : 6),
        [](view<const number, 1> in, view<number, 1> out) {
          for (index_t i = out.lo(0); i < out.hi(0); ++i) out(i) = in(i);
        },
        read(sums), write(wide_));
  }
  // Drops an array while tasks use it.
  void replace() {
    const std::size_t at = any();
    const number salt = random_();
    arrays_[at] = rt_.adopt<number>({salt});
    expected_[at] = salt;
  }

  runtime& rt_;
  std::mt19937 random_;
  std::vector<array<number, 1>> arrays_;
  std::vector<std::optional<number>> expected_;
  static constexpr index_t wide = 40;
  array<number, 1> wide_;
  std::vector<number> wide_expected_;
  std::vector<std::vector<std::size_t>> lists_{3};
  std::size_t list_ = 0;
};

class read_groups_on_threads : public testing::TestWithParam<unsigned> {};

TEST_P(read_groups_on_threads, give_what_the_program_says) {
  const unsigned seed = GetParam();
  for (const int threads : {1, 2, 3, 8}) {
    runtime rt(options{.threads = threads});
    list_program p(rt, seed * 31 + static_cast<unsigned>(threads));
    for (int part = 0; part < 4; ++part) {
      p.submit(300);
      EXPECT_EQ(p.wrong(), std::vector<std::size_t>{}) << threads << " threads, part " << part;
    }
  }
}

TEST_P(read_groups_on_threads, give_what_the_program_says_in_two_core_groups) {
  runtime rt(options{.threads = 4, .core_groups = 2});
  list_program p(rt, GetParam());
  for (int part = 0; part < 4; ++part) {
    p.submit(300);
    EXPECT_EQ(p.wrong(), std::vector<std::size_t>{}) << "part " << part;
  }
}

TEST_P(read_groups_on_threads, give_what_the_programs_of_several_threads_say) {
  runtime rt(options{.threads = 3});
  std::vector<std::vector<std::size_t>> wrong(4);
  {
    std::vector<std::jthread> all;
    for (unsigned n = 0; n < wrong.size(); ++n)
      all.emplace_back([&, n] {
        list_program p(rt, GetParam() * 17 + n);
        for (int part = 0; part < 3; ++part) {
          p.submit(300);
          const auto w = p.wrong();
          wrong[n].insert(wrong[n].end(), w.begin(), w.end());
        }
      });
  }
  EXPECT_EQ(wrong, std::vector<std::vector<std::size_t>>(4));
}

INSTANTIATE_TEST_SUITE_P(seeds, read_groups_on_threads, testing::Range(1u, 9u));

}  // namespace
