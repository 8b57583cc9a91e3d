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

/// Small numbers below `end`. Costs what the words up to the largest number cost: a machine alone needs one.
class id_set {
 public:
  static constexpr int end = 1024;

  id_set() noexcept = default;
  id_set(std::initializer_list<int> ids) {
    for (const int i : ids) insert(i);
  }
  id_set(const id_set& o) noexcept { take(o); }
  id_set& operator=(const id_set& o) noexcept {
    if (this != &o) take(o);
    return *this;
  }
  ~id_set() = default;
  /// All there are and will be.
  static id_set every() noexcept {
    id_set s;
    s.grow(words_max);
    std::fill_n(s.bits_.begin(), words_max, ~std::uint64_t{0});
    return s;
  }

  bool contains(std::size_t id) const noexcept { return id / 64 < words_ && (bits_[id / 64] >> id % 64 & 1) != 0; }
  void insert(std::size_t id) noexcept {
    grow(id / 64 + 1);
    bits_[id / 64] |= std::uint64_t{1} << id % 64;
  }
  void erase(std::size_t id) noexcept {
    if (id / 64 < words_) bits_[id / 64] &= ~(std::uint64_t{1} << id % 64);
  }
  void set(std::size_t id, bool in) noexcept { in ? insert(id) : erase(id); }
  void clear() noexcept { words_ = 0; }
  bool empty() const noexcept {
    for (std::size_t w = 0; w < words_; ++w)
      if (bits_[w] != 0) return false;
    return true;
  }
  int count() const noexcept {
    int n = 0;
    for (std::size_t w = 0; w < words_; ++w) n += std::popcount(bits_[w]);
    return n;
  }
  bool has_single() const noexcept { return !empty() && !has_more_than(1); }
  bool has_more_than(int n) const noexcept {
    for (std::size_t w = 0; w < words_; ++w)
      for (std::uint64_t left = bits_[w]; left != 0; left &= left - 1)
        if (n-- == 0) return true;
    return false;
  }
  bool meets(const id_set& o) const noexcept {
    for (std::size_t w = 0; w < std::min(words_, o.words_); ++w)
      if ((bits_[w] & o.bits_[w]) != 0) return true;
    return false;
  }
  /// The smallest that is at least so large; `end` if there is none.
  int next(std::size_t from) const noexcept {
    for (std::size_t w = from / 64; w < words_; ++w) {
      const std::uint64_t left = w == from / 64 ? bits_[w] & ~std::uint64_t{0} << from % 64 : bits_[w];
      if (left != 0) return static_cast<int>(w * 64) + std::countr_zero(left);
    }
    return end;
  }
  int first() const noexcept { return next(0); }
  /// The same of those that are in the other set too.
  int next_with(const id_set& o, std::size_t from) const noexcept {
    for (std::size_t w = from / 64; w < std::min(words_, o.words_); ++w) {
      const std::uint64_t both = bits_[w] & o.bits_[w];
      const std::uint64_t left = w == from / 64 ? both & ~std::uint64_t{0} << from % 64 : both;
      if (left != 0) return static_cast<int>(w * 64) + std::countr_zero(left);
    }
    return end;
  }
  /// f(id) in ascending order.
  template <class F>
  void each(F&& f) const {
    for (std::size_t w = 0; w < words_; ++w)
      for (std::uint64_t left = bits_[w]; left != 0; left &= left - 1)
        f(w * 64 + static_cast<std::size_t>(std::countr_zero(left)));
  }

  id_set& operator|=(const id_set& o) noexcept {
    grow(o.words_);
    for (std::size_t w = 0; w < o.words_; ++w) bits_[w] |= o.bits_[w];
    return *this;
  }
  id_set& operator&=(const id_set& o) noexcept {
    words_ = std::min(words_, o.words_);
    for (std::size_t w = 0; w < words_; ++w) bits_[w] &= o.bits_[w];
    return *this;
  }
  id_set& operator-=(const id_set& o) noexcept {
    for (std::size_t w = 0; w < std::min(words_, o.words_); ++w) bits_[w] &= ~o.bits_[w];
    return *this;
  }
  friend id_set operator|(id_set a, const id_set& b) noexcept { return a |= b; }
  friend id_set operator&(id_set a, const id_set& b) noexcept { return a &= b; }
  friend id_set operator-(id_set a, const id_set& b) noexcept { return a -= b; }
  friend bool operator==(const id_set& a, const id_set& b) noexcept {
    const id_set& longer = a.words_ > b.words_ ? a : b;
    const std::size_t both = std::min(a.words_, b.words_);
    return std::equal(a.bits_.begin(), a.bits_.begin() + both, b.bits_.begin()) &&
           std::all_of(longer.bits_.begin() + both, longer.bits_.begin() + longer.words_,
                       [](std::uint64_t w) { return w == 0; });
  }

 private:
  friend class shown_ids;
  static constexpr std::size_t words_max = end / 64;
  void grow(std::size_t words) noexcept {
    for (; words_ < words; ++words_) bits_[words_] = 0;
  }
  void take(const id_set& o) noexcept {
    words_ = o.words_;
    std::copy_n(o.bits_.begin(), words_, bits_.begin());
  }

  std::size_t words_ = 0;
  std::array<std::uint64_t, words_max> bits_;  // only so many words of it are used
};

/// The same, small as long as the numbers are below 64: for what there are many of.
class compact_ids {
 public:
  bool contains(std::size_t id) const noexcept {
    return id < 64 ? (few_ >> id & 1) != 0 : many_ && many_->contains(id);
  }
  void insert(std::size_t id) {
    if (id < 64) {
      few_ |= std::uint64_t{1} << id;
      return;
    }
    if (!many_) many_ = std::make_unique<id_set>();
    many_->insert(id);
  }
  void erase(std::size_t id) noexcept {
    if (id < 64)
      few_ &= ~(std::uint64_t{1} << id);
    else if (many_)
      many_->erase(id);
  }
  void clear() noexcept {
    few_ = 0;
    many_ = nullptr;
  }
  bool empty() const noexcept { return few_ == 0 && (!many_ || many_->empty()); }
  /// The smallest; id_set::end if there is none.
  int first() const noexcept { return few_ != 0 ? std::countr_zero(few_) : many_ ? many_->first() : id_set::end; }
  void add_to(id_set& s) const {
    for (std::uint64_t left = few_; left != 0; left &= left - 1)
      s.insert(static_cast<std::size_t>(std::countr_zero(left)));
    if (many_) s |= *many_;
  }

 private:
  std::uint64_t few_ = 0;
  std::unique_ptr<id_set> many_;  // those from 64 on
};

/// A set that one thread at a time sets while others read it; who reads while it is being set may see some of both.
class shown_ids {
 public:
  shown_ids& operator=(const id_set& s) noexcept {
    for (std::size_t w = 0; w < s.words_; ++w) bits_[w].store(s.bits_[w], std::memory_order_relaxed);
    for (std::size_t w = s.words_; w < bits_.size(); ++w) bits_[w].store(0, std::memory_order_relaxed);
    words_.store(std::max(words_.load(std::memory_order_relaxed), s.words_), std::memory_order_relaxed);
    return *this;
  }
  id_set get() const noexcept {
    id_set s;
    s.grow(words_.load(std::memory_order_relaxed));
    for (std::size_t w = 0; w < s.words_; ++w) s.bits_[w] = bits_[w].load(std::memory_order_relaxed);
    return s;
  }

 private:
  std::array<std::atomic<std::uint64_t>, id_set::words_max> bits_{};
  std::atomic<std::size_t> words_{0};  // never fewer than once
};

}  // namespace troupe::detail
