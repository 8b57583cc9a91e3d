// What this file is for: a program on an imagined node: calls at random on a few arrays, and what must come of them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Its fields are changed by calls that always succeed: a plain array beside each is changed in the order of the
// program, and in the end both must hold the same. Its stones are tiles of calls that may fail: that throw, are
// cancelled, or may run once only. What became of each says what must have become of those that came after it.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <troupe/array_maker.hpp>
#include <troupe/submitter.hpp>

#include "imagined_kernels.hpp"
#include "imagined_world.hpp"

namespace test {

class program : public troupe::array_maker<program>, public troupe::submitter<program> {
 public:
  program(imagined_world& w, imagined_node& on) : world_(w), on_(on) {
    rows_ = pick(3, 30), columns_ = pick(3, 30);
    for (field& f : fields_) renew(f);
    sums_.there = filled<word>({sum_side, sum_side}, troupe::tiles(pick(1, sum_side), sum_side), word{7}, "sums");
    sums_.model.assign(static_cast<std::size_t>(sum_side * sum_side), 7);
    const std::size_t count = static_cast<std::size_t>(pick(1, 6));
    stones_ = filled<word>({static_cast<index_t>(count) * stone_rows, stone_columns},
                           troupe::tiles(stone_rows, stone_columns), word{7}, "stones", some_replicas());
    stone_count_ = count;
  }

  imagined_node& on() { return on_; }
  troupe::detail::target submission_target() const { return {&on_.the_engine(), nullptr}; }

  /// Makes one more call.
  void call() {
    const std::uint64_t what = world_.below(100);
    if (what < 20)
      touch_stone();
    else if (what < 22)
      renew(fields_[world_.below(fields_.size())]);
    else if (what < 26)
      add_up();
    else
      touch_field();
  }
  /// Cancels some call.
  void cancel_one() {
    if (stops_.empty()) return;
    stops_[world_.below(stops_.size())].request_stop();
  }

  std::size_t planned = 0;  // calls that are still to be made
  std::size_t unfinished() const {
    std::size_t n = 0;
    for (const auto& f : plain_) n += !f.is_ready();
    for (const stone_call& s : calls_) n += !s.done.is_ready();
    return n;
  }
  std::string story() const {
    std::string all;
    for (std::size_t i = 0; i < plain_.size(); ++i)
      if (!plain_[i].is_ready()) all += " call " + std::to_string(i);
    for (std::size_t i = 0; i < calls_.size(); ++i)
      if (!calls_[i].done.is_ready()) all += " stone call " + std::to_string(i);
    return all;
  }

  /// All calls have ended: were they right? Time may pass.
  void check(std::size_t losses) {
    for (const auto& f : plain_) {
      const auto [code, text] = outcome_of(f);
      if (code && *code == troupe::errc::node_lost && losses > 2) {
        // A call that was under way on three nodes that went: said, and nothing more can be asked of the fields.
        return;
      }
      ASSERT_FALSE(code.has_value()) << "a call that cannot fail has failed: " << text;
    }
    for (const field& f : fields_) check(f);
    check(sums_);
    check_stones(losses);
  }
  void check_some_field() { check(fields_[world_.below(fields_.size())]); }
  /// Nothing of it is left.
  void drop() {
    plain_.clear();
    calls_.clear();
    stops_.clear();
    for (field& f : fields_) f.there = {};
    sums_.there = {};
    stones_ = {};
  }

 private:
  static constexpr index_t stone_rows = 2, stone_columns = 3;
  static constexpr index_t sum_side = 24;  // 4,608 bytes
  static constexpr std::size_t stone_words = stone_rows * stone_columns;
  using grid = troupe::array<word, 2>;

  struct field {
    grid there;
    std::vector<word> model;
  };
  struct stone_call {
    enum class kind { change, write, derive, once, fail } what;
    std::size_t to = 0, from = 0;
    word salt = 0;
    bool may_be_cancelled = false;
    troupe::future<void> done;
  };
  struct stone {
    bool in_error = false;
    std::array<word, stone_words> words{};
    plain_view view() { return {words.data(), stone_columns, {{0, 0}, {stone_rows, stone_columns}}}; }
  };

  troupe::array_options some_replicas() { return {.replicas = world_.chance(3) ? 2 : 1}; }
  index_t pick(index_t lo, index_t hi) {
    return lo + static_cast<index_t>(world_.below(static_cast<std::uint64_t>(hi - lo + 1)));
  }
  void renew(field& f) {
    f.there = filled<word>({rows_, columns_}, troupe::tiles(pick(1, rows_), pick(1, columns_)), word{7}, "field",
                           some_replicas());
    f.model.assign(static_cast<std::size_t>(rows_ * columns_), 7);
  }

  // ---- fields -------------------------------------------------------------------------------------------------------

  box<2> some_box(const field& f) {
    box<2> b;
    const bool one_tile = world_.below(3) != 0, all = world_.chance(6);
    for (int d = 0; d < 2; ++d) {
      const index_t size = d ? columns_ : rows_;
      b.lo[d] = all ? 0 : pick(0, size - 1);
      b.hi[d] = all ? size : pick(b.lo[d] + 1, size);
      if (!one_tile || all) continue;
      const index_t tile = f.there.tile(d);
      b.lo[d] = b.lo[d] / tile * tile;
      b.hi[d] = std::min(b.lo[d] + tile, size);
    }
    return b;
  }
  static box<2> tile_of(const field& f, box<2> b) {
    for (int d = 0; d < 2; ++d) {
      const index_t tile = f.there.tile(d);
      b.lo[d] = b.lo[d] / tile * tile;
      b.hi[d] = std::min(b.lo[d] + tile, f.there.size(d));
    }
    return b;
  }
  plain_view model(field& f, const box<2>& b) { return {f.model.data(), columns_, b}; }

  void touch_field() {
    std::array<std::size_t, 3> order{0, 1, 2};
    for (std::size_t i = 2; i > 0; --i) std::swap(order[i], order[world_.below(i + 1)]);
    field &a = fields_[order[0]], &b = fields_[order[1]], &c = fields_[order[2]];
    const box<2> at_a = some_box(a);
    box<2> at_b = some_box(b), at_c = some_box(c);
    const word salt = next_salt();
    troupe::task_options how;
    how.priority = static_cast<int>(pick(-1, 1));
    if (world_.chance(8)) how.where = troupe::scope::here();
    const auto in = [](const field& f, const box<2>& x) { return f.there.sub(x); };
    switch (world_.below(8)) {
      case 0:
        produce(model(a, at_a), access_mode::write, salt);
        return keep(spawn(how, kernels::write, troupe::write(in(a, at_a)), salt));
      case 1:
      case 2:
        produce(model(a, at_a), access_mode::update, salt);
        return keep(spawn(how, kernels::change, troupe::update(in(a, at_a)), salt));
      case 3:
        produce(model(b, at_b), access_mode::write, digest(model(a, at_a), salt));
        return keep(spawn(how, kernels::derive, troupe::read(in(a, at_a)), troupe::write(in(b, at_b)), salt));
      case 4:
        produce(model(c, at_c), access_mode::update, digest(model(b, at_b), digest(model(a, at_a), salt)));
        return keep(spawn(how, kernels::combine, troupe::read(in(a, at_a)), troupe::read(in(b, at_b)),
                          troupe::update(in(c, at_c)), salt));
      case 5: {
        at_b = tile_of(b, at_b), at_c = tile_of(c, at_c);
        const word h = digest(model(a, at_a), salt);
        produce(model(b, at_b), access_mode::write, h);
        produce(model(c, at_c), access_mode::update, h + 1);
        return keep(spawn(how, kernels::two, troupe::read(in(a, at_a)), troupe::write(in(b, at_b)),
                          troupe::update(in(c, at_c)), salt));
      }
      case 6:
        produce(model(b, at_b), access_mode::reduce, digest(model(a, at_a), salt));
        return keep(spawn(how, kernels::add, troupe::read(in(a, at_a)), troupe::reduce(in(b, at_b)), salt));
      default: {
        const std::vector<word> before = a.model;
        const auto clamped = [&](index_t y, index_t x) {
          y = std::clamp<index_t>(y, 0, rows_ - 1);
          x = std::clamp<index_t>(x, 0, columns_ - 1);
          return before[static_cast<std::size_t>(y * columns_ + x)];
        };
        for (index_t y = 0; y < rows_; ++y)
          for (index_t x = 0; x < columns_; ++x)
            b.model[static_cast<std::size_t>(y * columns_ + x)] = blurred(clamped, y, x, salt);
        return keep(for_each(how, troupe::grid(rows_, columns_), kernels::blur,
                             troupe::read(a.there, troupe::window(1, 1).clamp()), troupe::write(b.there), salt));
      }
    }
  }
  // Several calls reduce into one array, whose partials are larger than what goes inside a message.
  void add_up() {
    const field& a = fields_[world_.below(fields_.size())];
    const std::uint64_t count = 1 + world_.below(12);
    for (std::uint64_t i = 0; i < count; ++i) {
      const box<2> at = some_box(a);
      const word salt = next_salt();
      troupe::task_options how;
      if (world_.chance(8)) how.where = troupe::scope::here();
      produce(plain_view{sums_.model.data(), sum_side, {{0, 0}, {sum_side, sum_side}}}, access_mode::reduce,
              digest(plain_view{const_cast<word*>(a.model.data()), columns_, at}, salt));
      keep(spawn(how, kernels::add, troupe::read(a.there.sub(at)), troupe::reduce(sums_.there), salt));
    }
  }
  void keep(troupe::future<void> f) { plain_.push_back(std::move(f)); }

  // By value: while it waits, the program goes on.
  void check(const field f) {
    const index_t rows = f.there.size(0), columns = f.there.size(1);
    const auto seen = f.there.try_read_for(std::chrono::hours(1));
    ASSERT_TRUE(seen.has_value()) << "a field cannot be read";
    for (index_t y = 0; y < rows; ++y)
      for (index_t x = 0; x < columns; ++x)
        ASSERT_EQ((*seen)(y, x), f.model[static_cast<std::size_t>(y * columns + x)]) << "at " << y << ", " << x;
  }

  // ---- stones -------------------------------------------------------------------------------------------------------

  grid stone_at(std::size_t i) const {
    const auto y = static_cast<index_t>(i) * stone_rows;
    return stones_.sub({{y, 0}, {y + stone_rows, stone_columns}});
  }

  void touch_stone() {
    using kind = stone_call::kind;
    stone_call s;
    s.what = std::array{kind::change, kind::change, kind::write, kind::derive, kind::once, kind::fail}[world_.below(6)];
    s.to = world_.below(stone_count_);
    s.from = world_.below(stone_count_);
    if (s.what == kind::derive && s.from == s.to) s.what = kind::change;
    s.salt = next_salt();
    s.may_be_cancelled = world_.chance(3);
    troupe::task_options how;
    if (s.may_be_cancelled) how.stop = stops_.emplace_back().get_token();
    if (s.what != kind::once && world_.chance(4)) how.retries = 1;
    const grid to = stone_at(s.to);
    switch (s.what) {
      case kind::change:
        s.done = spawn(how, kernels::change, troupe::update(to), s.salt);
        break;
      case kind::write:
        s.done = spawn(how, kernels::write, troupe::write(to), s.salt);
        break;
      case kind::derive:
        s.done = spawn(how, kernels::derive, troupe::read(stone_at(s.from)), troupe::write(to), s.salt);
        break;
      case kind::once:
        s.done = spawn(how, kernels::once, troupe::update(to), s.salt);
        break;
      case kind::fail:
        s.done = spawn(how, kernels::fail, troupe::update(to), s.salt);
        break;
    }
    calls_.push_back(std::move(s));
  }

  static std::pair<std::optional<troupe::errc>, std::string> outcome_of(const troupe::future<void>& f) {
    try {
      f.get();
      return {};
    } catch (const troupe::error& e) {
      return {e.code(), e.what()};
    }
  }

  void check_stones(std::size_t losses) {
    using troupe::errc;
    using kind = stone_call::kind;
    std::vector<stone> all(stone_count_);
    for (stone& s : all) s.words.fill(7);
    for (std::size_t n = 0; n < calls_.size(); ++n) {
      const stone_call& c = calls_[n];
      const auto [code, text] = outcome_of(c.done);
      const std::string what = "stone call " + std::to_string(n) + " (" + text + ")";
      const stone from = all[c.what == kind::derive ? c.from : c.to];
      stone& to = all[c.to];
      const bool reads = c.what != kind::write;
      if (c.what == kind::once) {
        ASSERT_LE(begun()[c.salt], 1) << what << " must run once";
      }
      if (!code) {
        ASSERT_FALSE(reads && from.in_error) << what << " has run on data in error";
        ASSERT_NE(c.what, kind::fail) << what << " cannot succeed";
        ASSERT_GE(begun()[c.salt], 1) << what << " has not run";
        if (c.what == kind::write)
          produce(to.view(), access_mode::write, c.salt);
        else if (c.what == kind::derive)
          produce(to.view(), access_mode::write, digest(stone(from).view(), c.salt));
        else
          produce(to.view(), access_mode::update, c.salt);
        to.in_error = false;
        continue;
      }
      // A call that ran once only cannot be made again, and is not lost: it has ended when its data is at home.
      const bool expected = (reads && from.in_error) || (*code == errc::cancelled && c.may_be_cancelled) ||
                            (*code == errc::task_failed && c.what == kind::fail) ||
                            (*code == errc::unknown_outcome && c.what == kind::once && losses > 0) ||
                            (*code == errc::node_lost && losses > 2);
      ASSERT_TRUE(expected) << what << " has ended with what it cannot end with, code " << static_cast<int>(*code);
      to.in_error = true;
    }
    for (std::size_t i = 0; i < stone_count_; ++i) {
      stone& s = all[i];
      try {
        const auto seen = stone_at(i).try_read_for(std::chrono::hours(1));
        ASSERT_TRUE(seen.has_value()) << "stone " << i << " cannot be read";
        ASSERT_FALSE(s.in_error) << "stone " << i << " is in error, and was read";
        for (index_t y = 0; y < stone_rows; ++y)
          for (index_t x = 0; x < stone_columns; ++x) ASSERT_EQ((*seen)(y, x), s.view()(y, x)) << "stone " << i;
      } catch (const troupe::error& e) {
        ASSERT_TRUE(s.in_error) << "stone " << i << ": " << e.what();
      }
    }
  }

  word next_salt() { return mix(++salts_, world_.random()); }

  imagined_world& world_;
  imagined_node& on_;
  index_t rows_ = 1, columns_ = 1;
  std::array<field, 3> fields_;
  field sums_;
  grid stones_;
  std::size_t stone_count_ = 0;
  std::vector<troupe::future<void>> plain_;
  std::vector<stone_call> calls_;
  std::vector<std::stop_source> stops_;
  word salts_ = 0;
};

}  // namespace test
