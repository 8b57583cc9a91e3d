// What this file is for: which boxes are copied as their task ends, and what the copies hold.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/execution/written_copies.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "actors/memory/host_tiles.hpp"
#include "tests/actors/placement/loose_graph.hpp"

namespace {

using namespace troupe::detail;
using enum troupe::access_mode;
using std::uint64_t;

class written_copies : public testing::Test, protected test::loose_graph {
 protected:
  void fill(array_core* a, uint64_t first) {
    auto* to = reinterpret_cast<uint64_t*>(host_tile(*rt, *a, 0, true));
    for (troupe::index_t i = 0; i < a->spec.size[0]; ++i) to[i] = first + static_cast<uint64_t>(i);
  }
  static std::vector<uint64_t> words(const written_copy& w) {
    std::vector<uint64_t> all(w.bytes.size() / 8);
    std::memcpy(all.data(), w.bytes.data(), w.bytes.size());
    return all;
  }
};

TEST_F(written_copies, hold_what_was_there_when_they_were_made) {
  array_core *a = array("a", 3), *b = array("b", 2);
  task_record* const t = ordered({{a, update}, {b, write}});
  extra(t);
  ASSERT_TRUE(ask_for_copy(*t, 0, 24));
  ASSERT_TRUE(ask_for_copy(*t, 1, 24));
  fill(a, 10);
  fill(b, 20);
  make_written_copies(*rt, *t);
  fill(a, 30);  // a later task
  ASSERT_EQ(t->extra->written.size(), 2u);
  EXPECT_EQ(t->extra->written[0].access, 0);
  EXPECT_EQ(words(t->extra->written[0]), (std::vector<uint64_t>{10, 11, 12}));
  EXPECT_EQ(words(t->extra->written[1]), (std::vector<uint64_t>{20, 21}));
}

TEST_F(written_copies, are_of_small_boxes_that_are_written) {
  array_core *a = array("a", 3), *b = array("b", 3), *c = array("c", 4);
  task_record* const t = ordered({{a, read}, {b, write}, {c, write}});
  extra(t);
  EXPECT_FALSE(ask_for_copy(*t, 0, 24)) << "it is only read";
  EXPECT_TRUE(ask_for_copy(*t, 1, 24));
  EXPECT_FALSE(ask_for_copy(*t, 2, 31)) << "a byte too large";
  EXPECT_TRUE(ask_for_copy(*t, 2, 32));
  EXPECT_EQ(t->extra->written.size(), 2u);
}

TEST_F(written_copies, are_made_anew_when_a_body_is_tried_again) {
  array_core* const a = array("a", 2);
  task_record* const t = ordered({{a, write}});
  extra(t);
  ASSERT_TRUE(ask_for_copy(*t, 0, 16));
  fill(a, 1);
  make_written_copies(*rt, *t);
  fill(a, 5);
  make_written_copies(*rt, *t);
  EXPECT_EQ(words(t->extra->written[0]), (std::vector<uint64_t>{5, 6}));
}

}  // namespace
