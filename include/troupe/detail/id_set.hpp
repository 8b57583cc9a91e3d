// What this file is for: sets of executors and of memory spaces.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>

namespace troupe::detail {

/// Small numbers below `end`. Costs what the words that hold any cost: a machine alone needs one, and so does a node
/// with a large number among a thousand.
class id_set {
 public:
  static constexpr int end = 1024;

  id_set() noexcept = default;
  id_set(std::initializer_list<int> ids) {
    for (const int i : ids) insert(static_cast<std::size_t>(i));
  }
  id_set(const id_set& o) noexcept { take(o); }
  id_set& operator=(const id_set& o) noexcept {
    if (this != &o) take(o);
    return *this;
  }
  ~id_set() = default;
  /// The set of all numbers.
  static id_set every() noexcept {
    id_set s;
    s.used_ = (std::uint32_t{1} << words_max) - 1;
    s.bits_.fill(~std::uint64_t{0});
    return s;
  }

  bool contains(std::size_t id) const noexcept { return has_word(id / 64) && (bits_[id / 64] >> id % 64 & 1) != 0; }
  void insert(std::size_t id) noexcept {
    const std::size_t w = id / 64;
    bits_[w] = word(w) | std::uint64_t{1} << id % 64;
    used_ |= std::uint32_t{1} << w;
  }
  void erase(std::size_t id) noexcept {
    if (has_word(id / 64)) set_word(id / 64, bits_[id / 64] & ~(std::uint64_t{1} << id % 64));
  }
  void set(std::size_t id, bool in) noexcept { in ? insert(id) : erase(id); }
  void clear() noexcept { used_ = 0; }
  bool empty() const noexcept { return used_ == 0; }
  int count() const noexcept {
    int n = 0;
    each_word(used_, [&](std::size_t w) { n += std::popcount(bits_[w]); });
    return n;
  }
  bool has_single() const noexcept { return std::has_single_bit(used_) && std::has_single_bit(bits_[first_of(used_)]); }
  bool has_more_than(int n) const noexcept { return has_more_than_with(*this, n); }
  /// The same of those that are in the other set too.
  bool has_more_than_with(const id_set& o, int n) const noexcept {
    for (std::uint32_t words = used_ & o.used_; words != 0; words &= words - 1)
      for (std::uint64_t left = both(o, first_of(words)); left != 0; left &= left - 1)
        if (n-- == 0) return true;
    return false;
  }
  bool meets(const id_set& o) const noexcept {
    for (std::uint32_t words = used_ & o.used_; words != 0; words &= words - 1)
      if (both(o, first_of(words)) != 0) return true;
    return false;
  }
  /// The smallest that is at least so large; `end` if there is none.
  int next(std::size_t from) const noexcept { return next_with(*this, from); }
  int first() const noexcept { return next(0); }
  /// The same of those that are in the other set too.
  int next_with(const id_set& o, std::size_t from) const noexcept {
    if (from >= end) return end;
    std::uint32_t words = used_ & o.used_ & ~std::uint32_t{0} << from / 64;
    if ((words >> from / 64 & 1) != 0) {
      const std::uint64_t left = both(o, from / 64) & ~std::uint64_t{0} << from % 64;
      if (left != 0) return number(from / 64, left);
      words &= words - 1;
    }
    for (; words != 0; words &= words - 1)
      if (const std::uint64_t left = both(o, first_of(words)); left != 0) return number(first_of(words), left);
    return end;
  }
  /// f(id) in ascending order.
  template <class F>
  void each(F&& f) const {
    each_word(used_, [&](std::size_t w) {
      for (std::uint64_t left = bits_[w]; left != 0; left &= left - 1) f(static_cast<std::size_t>(number(w, left)));
    });
  }

  id_set& operator|=(const id_set& o) noexcept {
    each_word(o.used_, [&](std::size_t w) { bits_[w] = word(w) | o.bits_[w]; });
    used_ |= o.used_;
    return *this;
  }
  id_set& operator&=(const id_set& o) noexcept {
    used_ &= o.used_;
    each_word(used_, [&](std::size_t w) { set_word(w, both(o, w)); });
    return *this;
  }
  id_set& operator-=(const id_set& o) noexcept {
    each_word(used_ & o.used_, [&](std::size_t w) { set_word(w, bits_[w] & ~o.bits_[w]); });
    return *this;
  }
  friend id_set operator|(id_set a, const id_set& b) noexcept { return a |= b; }
  friend id_set operator&(id_set a, const id_set& b) noexcept { return a &= b; }
  friend id_set operator-(id_set a, const id_set& b) noexcept { return a -= b; }
  friend bool operator==(const id_set& a, const id_set& b) noexcept {
    if (a.used_ != b.used_) return false;
    for (std::uint32_t words = a.used_; words != 0; words &= words - 1)
      if (a.bits_[first_of(words)] != b.bits_[first_of(words)]) return false;
    return true;
  }

 private:
  friend class shown_ids;
  static constexpr std::size_t words_max = end / 64;
  static std::size_t first_of(std::uint32_t words) noexcept {
    return static_cast<std::size_t>(std::countr_zero(words));
  }
  static int number(std::size_t w, std::uint64_t left) noexcept {
    return static_cast<int>(w * 64) + std::countr_zero(left);
  }
  template <class F>
  static void each_word(std::uint32_t words, F&& f) {
    for (; words != 0; words &= words - 1) f(first_of(words));
  }
  bool has_word(std::size_t w) const noexcept { return w < words_max && (used_ >> w & 1) != 0; }
  std::uint64_t word(std::size_t w) const noexcept { return (used_ >> w & 1) != 0 ? bits_[w] : 0; }
  std::uint64_t both(const id_set& o, std::size_t w) const noexcept { return bits_[w] & o.bits_[w]; }
  void set_word(std::size_t w, std::uint64_t to) noexcept {
    bits_[w] = to;
    if (to == 0) used_ &= ~(std::uint32_t{1} << w);
  }
  void take(const id_set& o) noexcept {
    used_ = o.used_;
    each_word(used_, [&](std::size_t w) { bits_[w] = o.bits_[w]; });
  }

  std::uint32_t used_ = 0;                     // the words that are not zero
  std::array<std::uint64_t, words_max> bits_;  // only those hold anything
};

/// The same, small as long as the numbers lie in one word: for what there are many of.
class compact_ids {
 public:
  bool contains(std::size_t id) const noexcept {
    return many_ ? many_->contains(id) : id / 64 == word_ && (few_ >> id % 64 & 1) != 0;
  }
  void insert(std::size_t id) {
    if (few_ == 0) word_ = static_cast<std::uint16_t>(id / 64);
    if (!many_ && id / 64 != word_) {
      many_ = std::make_unique<id_set>();
      add_few_to(*many_);
    }
    if (many_)
      many_->insert(id);
    else
      few_ |= std::uint64_t{1} << id % 64;
  }
  void erase(std::size_t id) noexcept {
    if (many_)
      many_->erase(id);
    else if (id / 64 == word_)
      few_ &= ~(std::uint64_t{1} << id % 64);
  }
  void clear() noexcept {
    few_ = 0;
    many_ = nullptr;
  }
  bool empty() const noexcept { return many_ ? many_->empty() : few_ == 0; }
  /// The smallest; id_set::end if there is none.
  int first() const noexcept {
    return many_ ? many_->first() : few_ != 0 ? word_ * 64 + std::countr_zero(few_) : id_set::end;
  }
  void add_to(id_set& s) const {
    if (many_)
      s |= *many_;
    else
      add_few_to(s);
  }

 private:
  void add_few_to(id_set& s) const {
    for (std::uint64_t left = few_; left != 0; left &= left - 1)
      s.insert(word_ * 64u + static_cast<std::size_t>(std::countr_zero(left)));
  }

  std::unique_ptr<id_set> many_;  // all, where they lie in several words
  std::uint64_t few_ = 0;         // else those of this word
  std::uint16_t word_ = 0;
};

/// A set that one thread at a time sets while others read it; a thread that reads while it is being set may see some of
/// both, and sees another change afterwards.
class shown_ids {
 public:
  shown_ids& operator=(const id_set& s) noexcept {
    for (std::size_t w = 0; w < bits_.size(); ++w) bits_[w].store(s.word(w), std::memory_order_relaxed);
    changes_.fetch_add(1, std::memory_order_release);
    return *this;
  }
  id_set get() const noexcept {
    id_set s;
    for (std::size_t w = 0; w < bits_.size(); ++w)
      if (const std::uint64_t bits = bits_[w].load(std::memory_order_relaxed); bits != 0) {
        s.bits_[w] = bits;
        s.used_ |= std::uint32_t{1} << w;
      }
    return s;
  }
  /// As long as it is the same as before a `get`, another one gives the same.
  std::uint32_t changes() const noexcept { return changes_.load(std::memory_order_acquire); }

 private:
  std::array<std::atomic<std::uint64_t>, id_set::words_max> bits_{};
  std::atomic<std::uint32_t> changes_{0};
};

}  // namespace troupe::detail
