// What this file is for: which elements a run of a recording reads, updates and writes, against a model of single ones.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/data/recorded_effect.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "points.hpp"

namespace {

using namespace troupe;
using logic::box4;
using logic::box_list;
using logic::recorded_effect;

constexpr box4 line(index_t lo, index_t hi) { return {{lo, 0, 0, 0}, {hi, 1, 1, 1}}; }
constexpr box4 tile = line(0, 16);

bool is_whole(const recorded_effect::accesses& a) { return a.read.empty() && a.written.empty(); }

// Returns for each element what is done to it: "r", "w", "u" both, "." nothing.
std::string done(const recorded_effect::accesses& a) {
  if (is_whole(a)) return a.mode == access_mode::read ? "all r" : a.mode == access_mode::update ? "all u" : "all w";
  std::string text(16, '.');
  const auto each = [](const box_list& boxes, auto&& f) {
    for (const box4& b : boxes)
      for (index_t i = b.lo[0]; i < b.hi[0]; ++i) f(static_cast<std::size_t>(i));
  };
  each(a.read, [&](std::size_t i) {
    EXPECT_EQ(text[i], '.') << "read twice";
    text[i] = 'r';
  });
  each(a.written, [&](std::size_t i) {
    EXPECT_TRUE(text[i] == '.' || text[i] == 'r') << "written twice";
    text[i] = text[i] == 'r' ? 'u' : 'w';
  });
  return text;
}

TEST(recorded_effect, of_whole_tiles_is_one_access) {
  recorded_effect none, all;
  all.read(tile, tile);
  EXPECT_EQ(done(all.of({}, tile)), "all r");
  EXPECT_EQ(done(none.of({tile}, tile)), "all w");
  EXPECT_EQ(done(all.of({tile}, tile)), "all u");
  EXPECT_EQ(done(none.of({line(0, 5), line(5, 16)}, tile)), "all w");
}

TEST(recorded_effect, of_parts_is_told_by_boxes) {
  recorded_effect none, some, all;
  some.read(line(4, 8), tile);
  all.read(tile, tile);
  EXPECT_EQ(done(some.of({}, tile)), "....rrrr........");
  EXPECT_EQ(done(none.of({line(2, 4)}, tile)), "..ww............");
  EXPECT_EQ(done(some.of({line(4, 8)}, tile)), "....uuuu........");
  EXPECT_EQ(done(some.of({line(6, 10)}, tile)), "....rruuww......");
  EXPECT_EQ(done(some.of({tile}, tile)), "wwwwuuuuwwwwwwww");
  EXPECT_EQ(done(all.of({line(1, 8), line(8, 15)}, tile)), "ruuuuuuuuuuuuuur");
}

TEST(recorded_effect, of_neighbouring_boxes_is_one_box) {
  recorded_effect e;
  e.read(tile, tile);
  box_list chunks;
  for (index_t i = 1; i < 15; ++i) chunks.push_back(line(i, i + 1));
  const auto a = e.of(chunks, tile);
  EXPECT_EQ(a.written.size(), 1u);
  EXPECT_EQ(a.read.size(), 1u) << "what is read of a border does not fall apart";
}

TEST(recorded_effect, of_too_many_boxes_is_the_tile_unless_it_reads_nothing) {
  const box4 large = line(0, 1'000);
  box_list every_other;
  for (index_t i = 0; i < 200; i += 2) every_other.push_back(line(i, i + 1));
  recorded_effect none, few, many;
  few.read(line(500, 501), large);
  for (const box4& b : every_other) many.read(b, large);
  EXPECT_EQ(none.of(every_other, large).written.size(), 100u);
  EXPECT_TRUE(is_whole(few.of(every_other, large)));
  EXPECT_EQ(few.of(every_other, large).mode, access_mode::update);
  EXPECT_TRUE(is_whole(many.of({}, large)));
  EXPECT_EQ(many.of({}, large).mode, access_mode::read);
}

TEST(recorded_effect, of_a_read_between_many_writes_is_the_tile_and_does_not_look_at_all_of_them) {
  const box4 large = line(0, 100'000);
  recorded_effect e;
  int looked_at = 0;
  for (int reads = 0; reads < 100; ++reads)
    e.read(large, large, [&](auto&& f) {
      for (index_t i = 0; i < 100'000; i += 2, ++looked_at)
        if (!f(line(i, i + 1))) break;
    });
  EXPECT_LE(looked_at, 200);
  const auto a = e.of({line(0, 1)}, large);
  EXPECT_EQ(a.read, box_list{large});
  EXPECT_EQ(a.written, box_list{line(0, 1)});
}

TEST(recorded_effect, of_random_programs_is_what_a_model_says) {
  std::mt19937 random(3);
  for (int round = 0; round < 3'000; ++round) {
    recorded_effect e;
    std::string model(16, '.');  // per element: "." untouched, "r" read first, "u" read first and written, "w" written
    box_list written;
    for (unsigned n = 1 + random() % 6; n != 0; --n) {
      const auto lo = static_cast<index_t>(random() % 16);
      const box4 b = line(lo, lo + 1 + static_cast<index_t>(random() % static_cast<unsigned>(16 - lo)));
      const bool reads = random() % 2 != 0, writes = !reads || random() % 2 != 0;
      if (reads)
        e.read(b, tile, [&](auto&& f) {
          for (const box4& w : written)
            if (!f(w)) break;
        });
      if (writes) {
        written = logic::without(written, b);
        written.push_back(b);
      }
      for (index_t i = b.lo[0]; i < b.hi[0]; ++i) {
        char& c = model[static_cast<std::size_t>(i)];
        if (reads && c == '.') c = 'r';
        if (writes) c = c == 'r' || c == 'u' ? 'u' : 'w';
      }
    }
    const auto a = e.of(written, tile);
    const std::string all = done(a);
    if (!is_whole(a))
      ASSERT_EQ(all, model);
    else
      ASSERT_EQ(model, std::string(16, all.back()));
  }
}

}  // namespace
