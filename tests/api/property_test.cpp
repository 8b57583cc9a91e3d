// What this file is for: random task graphs over random boxes leave the bytes that a plain serial run leaves.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A failing case prints its seed; `--gtest_filter` with that configuration runs it again among the others of its list.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <troupe/troupe.hpp>

#include "tests/support/hashed_bodies.hpp"

namespace {

using namespace troupe;
using troupe::index_t;
using namespace test;

// ---- one task -------------------------------------------------------------------------------------------------------

struct operation {
  enum class kind { alone, reading, two_targets, host } what = kind::alone;
  access_mode mode = access_mode::write;
  int line = 0, field = 0;  // arrays that are read, or for two_targets written and updated
  box<1> line_box{};
  box<2> field_box{};
  bool to_line = false;  // where the result goes
  int target = 0;
  box<1> line_target{};
  box<2> field_target{};
  word salt = 0;
  bool flaky = false;  // the first try scribbles and fails
  int priority = 0;
  int executor = -1;
};

struct fault : std::runtime_error {
  fault() : std::runtime_error("the first try fails") {}
};

struct shape {
  index_t size[2], tile[2];
};

class world {
 public:
  world(std::uint32_t seed, int executors) : random_(seed), executors_(executors) {
    for (auto& l : lines_) l = {{1, pick(1, 60)}, {1, pick(1, 70)}};
    for (auto& f : fields_) f = {{pick(1, 20), pick(1, 20)}, {pick(1, 24), pick(1, 24)}};
    for (int i = 0; i < 2; ++i) {
      line_model_[i].assign(static_cast<std::size_t>(lines_[i].size[1]), 7);
      field_model_[i].assign(static_cast<std::size_t>(fields_[i].size[0] * fields_[i].size[1]), 7);
    }
  }

  void run(runtime& rt, int count) {
    array<word, 1> lines[2];
    array<word, 2> fields[2];
    for (int i = 0; i < 2; ++i) {
      lines[i] = rt.filled<word>({lines_[i].size[1]}, tiles(lines_[i].tile[1]), 7, "line " + std::to_string(i));
      fields[i] = rt.filled<word>({fields_[i].size[0], fields_[i].size[1]},
                                  tiles(fields_[i].tile[0], fields_[i].tile[1]), 7, "field " + std::to_string(i));
    }
    for (int i = 0; i < count; ++i) {
      const operation op = next();
      serial(op);
      if (op.to_line)
        parallel(rt, op, lines, fields, lines[op.target].sub(op.line_target));
      else
        parallel(rt, op, lines, fields, fields[op.target].sub(op.field_target));
    }
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(contents(lines[i]), line_model_[i]) << "line " << i;
      EXPECT_EQ(contents(fields[i]), field_model_[i]) << "field " << i;
    }
  }

 private:
  index_t pick(index_t lo, index_t hi) { return std::uniform_int_distribution<index_t>(lo, hi)(random_); }
  bool chance(int of) { return pick(1, of) == 1; }
  void pick_range(index_t size, index_t& lo, index_t& hi) {
    lo = pick(0, size - 1);
    hi = pick(lo + 1, size);
    if (chance(4)) lo = 0, hi = size;
  }
  box<1> box_in(const shape& s, const box<1>*) {
    box<1> b;
    pick_range(s.size[1], b.lo[0], b.hi[0]);
    return b;
  }
  box<2> box_in(const shape& s, const box<2>*) {
    box<2> b;
    for (int d = 0; d < 2; ++d)
      pick_range(s.size[d], b.lo[static_cast<std::size_t>(d)], b.hi[static_cast<std::size_t>(d)]);
    if (chance(3)) {  // exactly one tile
      for (std::size_t d = 0; d < 2; ++d) {
        b.lo[d] = b.lo[d] / s.tile[d] * s.tile[d];
        b.hi[d] = std::min(b.lo[d] + s.tile[d], s.size[d]);
      }
    }
    return b;
  }

  operation next() {
    operation op;
    const index_t what = pick(0, 9);
    op.what = what < 3   ? operation::kind::alone
              : what < 7 ? operation::kind::reading
              : what < 9 ? operation::kind::two_targets
                         : operation::kind::host;
    const access_mode modes[] = {access_mode::write, access_mode::update, access_mode::reduce};
    op.mode = modes[pick(0, 2)];
    op.line = static_cast<int>(pick(0, 1));
    op.field = static_cast<int>(pick(0, 1));
    op.line_box = box_in(lines_[op.line], &op.line_box);
    op.field_box = box_in(fields_[op.field], &op.field_box);
    op.to_line = chance(2);
    // A task does not write an array that it also reads: what it would see of its own writes is nowhere promised.
    op.target = op.what == operation::kind::alone || op.what == operation::kind::host
                    ? static_cast<int>(pick(0, 1))
                    : 1 - (op.to_line ? op.line : op.field);
    op.line_target = box_in(lines_[op.target], &op.line_target);
    op.field_target = box_in(fields_[op.target], &op.field_target);
    op.salt = static_cast<word>(random_());
    op.flaky = chance(8);
    op.priority = static_cast<int>(pick(-1, 1));
    if (chance(3)) op.executor = static_cast<int>(pick(0, executors_ - 1));
    return op;
  }

  plain_view model(const box<1>& b, int i) {
    return {line_model_[i].data(), lines_[i].size[1], {{0, b.lo[0]}, {1, b.hi[0]}}};
  }
  plain_view model(const box<2>& b, int i) { return {field_model_[i].data(), fields_[i].size[1], b}; }

  void serial(const operation& op) {
    const plain_view line = model(op.line_box, op.line), field = model(op.field_box, op.field);
    const plain_view target = op.to_line ? model(op.line_target, op.target) : model(op.field_target, op.target);
    word h = op.salt;
    if (op.what == operation::kind::reading) h = digest(field, digest(line, h));
    if (op.what == operation::kind::two_targets) {
      produce(line, access_mode::write, h);
      produce(field, access_mode::update, h + 1);
    }
    produce(target, op.mode, h);
  }

  template <int N>
  void parallel(runtime& rt, const operation& op, const array<word, 1>* lines, const array<word, 2>* fields,
                const array<word, N>& target) {
    if (op.what == operation::kind::host) {
      if (op.mode == access_mode::write)
        produce(static_cast<const view<word, N>&>(target.write()), op.mode, op.salt);
      else
        produce(static_cast<const view<word, N>&>(target.update()), op.mode, op.salt);
      return;
    }
    task_options how{.priority = op.priority, .retries = op.flaky ? 1 : 0};
    if (op.executor >= 0) how.where = scope::executor("cpu:" + std::to_string(op.executor));
    switch (op.mode) {
      case access_mode::write:
        call(rt, how, op, lines, fields, write(target));
        break;
      case access_mode::update:
        call(rt, how, op, lines, fields, update(target));
        break;
      default:
        call(rt, how, op, lines, fields, reduce(target));
        break;
    }
  }

  template <class Access>
  void call(runtime& rt, const task_options& how, const operation& op, const array<word, 1>* lines,
            const array<word, 2>* fields, const Access& target) {
    const auto finish = [op](task_context& c, const auto& to, word h) {
      if (op.flaky && c.attempt() == 1) {
        produce(to, op.mode, ~h);
        throw fault();
      }
      produce(to, op.mode, h);
    };
    const auto line = lines[op.line].sub(op.line_box);
    const auto field = fields[op.field].sub(op.field_box);
    switch (op.what) {
      case operation::kind::alone:
        rt.spawn(
            how, [=](task_context& c, const auto& to) { finish(c, to, op.salt); }, target);
        break;
      case operation::kind::reading:
        rt.spawn(
            how,
            [=](task_context& c, const view<const word, 1>& l, const view<const word, 2>& f, const auto& to) {
              finish(c, to, digest(f, digest(l, op.salt)));
            },
            read(line), read(field), target);
        break;
      default:
        rt.spawn(
            how,
            [=](task_context& c, const view<word, 1>& l, const view<word, 2>& f, const auto& to) {
              produce(l, access_mode::write, op.salt);
              produce(f, access_mode::update, op.salt + 1);
              finish(c, to, op.salt);
            },
            write(line), update(field), target);
    }
  }

  template <int N>
  static std::vector<word> contents(const array<word, N>& a) {
    std::vector<word> v;
    const auto seen = a.read();
    for_elements(static_cast<const view<const word, N>&>(seen), [&](const word& x) { v.push_back(x); });
    return v;
  }

  std::mt19937 random_;
  int executors_;
  shape lines_[2], fields_[2];
  std::vector<word> line_model_[2], field_model_[2];
};

struct machine {
  int threads, core_groups;
};

class random_graphs : public testing::TestWithParam<machine> {};

constexpr std::uint32_t graphs = 100, tasks_per_graph = 60;

TEST_P(random_graphs, leave_the_bytes_of_the_serial_run) {
  const auto [threads, groups] = GetParam();
  runtime rt(options{.threads = threads, .core_groups = groups});
  for (std::uint32_t seed = 1; seed <= graphs; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    world(seed, groups).run(rt, tasks_per_graph);
    rt.wait_all();
    ASSERT_EQ(rt.report().bytes_allocated, 0u);
    if (HasFailure()) break;
  }
}

TEST_P(random_graphs, leave_the_bytes_of_the_serial_run_with_many_small_tasks) {
  const auto [threads, groups] = GetParam();
  runtime rt(options{.threads = threads, .core_groups = groups, .tasks_in_flight_max = 50});
  for (std::uint32_t seed = 1001; seed <= 1005; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    world(seed, groups).run(rt, 1000);
    if (HasFailure()) break;
  }
}

INSTANTIATE_TEST_SUITE_P(machines, random_graphs, testing::Values(machine{1, 1}, machine{2, 1}, machine{4, 2}),
                         [](const auto& machine_shown) {
                           return "threads" + std::to_string(machine_shown.param.threads) + "_groups" +
                                  std::to_string(machine_shown.param.core_groups);
                         });

}  // namespace
