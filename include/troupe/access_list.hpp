// What this file is for: arguments of a call that are lists whose length is known at run time.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <iterator>
#include <new>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/access.hpp>
#include <troupe/view.hpp>

namespace troupe {

template <class T>
class future;

namespace detail {

/// The elements of a list that is passed to a body, one after the other: up to 16 of usual sizes without an allocation.
template <class E>
class short_list {
  static_assert(std::is_trivially_copyable_v<E> && alignof(E) <= alignof(std::max_align_t));

 public:
  explicit short_list(std::size_t count) : size_(count) {
    if (count > inline_max) more_.resize(count * sizeof(E));
  }
  std::size_t size() const { return size_; }
  const E* data() const { return std::launder(reinterpret_cast<const E*>(bytes())); }
  std::byte* bytes() { return size_ > inline_max ? more_.data() : room_.data(); }
  const std::byte* bytes() const { return size_ > inline_max ? more_.data() : room_.data(); }
  void set(std::size_t i, const E& e) { new (bytes() + i * sizeof(E)) E(e); }

 private:
  static constexpr std::size_t inline_max = std::min<std::size_t>(16, 2048 / sizeof(E));
  std::size_t size_;
  alignas(E) std::array<std::byte, std::max<std::size_t>(1, inline_max * sizeof(E))> room_;
  std::vector<std::byte> more_;
};

/// One argument of a call that names a list of arrays. Lives for the full expression of the call only.
template <class T, int N, access_mode Mode, class Mapper>
struct access_list {
  std::span<const array<T, N>> targets;
  Mapper map;
  access_argument<T, N, Mode, Mapper> at(std::size_t i) const { return {&targets[i], map, nullptr, {}}; }
};

}  // namespace detail

/// The views of a list of arrays, which a body gets in place of a view: in the list's order, of type `view<T, N>`
/// (`view<const T, N>` for `read_all`). A contiguous range: a body may take a `std::span<const view<const float, 1>>`
/// instead. Valid while the body runs.
template <class T, int N>
class views {
 public:
  using value_type = view<T, N>;
  using iterator = const value_type*;

  /// Number of arrays in the list.
  std::size_t size() const { return list_.size(); }
  bool empty() const { return list_.size() == 0; }
  const value_type* data() const { return list_.data(); }
  iterator begin() const { return data(); }
  iterator end() const { return data() + size(); }
  /// The view of the list's array number i; undefined from `size()` on.
  const value_type& operator[](std::size_t i) const { return data()[i]; }

  /// Used by the library.
  explicit views(detail::short_list<value_type> list) : list_(std::move(list)) {}

 private:
  detail::short_list<value_type> list_;
};

/// The values of a list of futures, which a body that is not a kernel gets in place of a value: in the list's order. A
/// vector or span of futures is such an argument (of a kernel, where its signature has a `std::span<const T>`). Valid
/// while the body runs.
template <class T>
class values {
 public:
  using value_type = T;
  class iterator {
   public:
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using reference = const T&;
    using pointer = const T*;
    using iterator_category = std::random_access_iterator_tag;

    iterator() = default;
    reference operator*() const { return **at_; }
    pointer operator->() const { return *at_; }
    reference operator[](difference_type n) const { return *at_[n]; }
    iterator& operator++() { return ++at_, *this; }
    iterator operator++(int) { return iterator(at_++); }
    iterator& operator--() { return --at_, *this; }
    iterator operator--(int) { return iterator(at_--); }
    iterator& operator+=(difference_type n) { return at_ += n, *this; }
    iterator& operator-=(difference_type n) { return at_ -= n, *this; }
    friend iterator operator+(iterator i, difference_type n) { return i += n; }
    friend iterator operator+(difference_type n, iterator i) { return i += n; }
    friend iterator operator-(iterator i, difference_type n) { return i -= n; }
    friend difference_type operator-(iterator a, iterator b) { return a.at_ - b.at_; }
    friend auto operator<=>(const iterator&, const iterator&) = default;

   private:
    friend class values;
    explicit iterator(const T* const* at) : at_(at) {}
    const T* const* at_ = nullptr;
  };

  /// Number of futures in the list.
  std::size_t size() const { return list_.size(); }
  bool empty() const { return list_.size() == 0; }
  iterator begin() const { return iterator(list_.data()); }
  iterator end() const { return iterator(list_.data() + size()); }
  /// The value of the list's future number i; undefined from `size()` on.
  const T& operator[](std::size_t i) const { return *list_.data()[i]; }

  /// Used by the library.
  explicit values(detail::short_list<const T*> list) : list_(std::move(list)) {}

 private:
  detail::short_list<const T*> list_;
};

namespace detail {
template <class T>
struct as_arrays;
template <class T, int N>
struct as_arrays<array<T, N>> {
  template <access_mode Mode, class M, class List>
  requires fills_with<M, T>
  static access_list<T, N, Mode, M> make(const List& list, M map) {
    return {std::span<const array<T, N>>(list), std::move(map)};
  }
};
/// A contiguous range of arrays: a vector, std::array, span or C array of them.
template <class List>
concept array_list = std::ranges::contiguous_range<const List> && std::ranges::sized_range<const List> && requires {
  sizeof(as_arrays<std::ranges::range_value_t<const List>>);
};
}  // namespace detail

/// The task reads every array of the list, each as `read(a, map)` would:
/// `rt.spawn(add_up, read_all(parts), write(sum))`. The body gets a `views` in place of a view, the body of a kernel a
/// `std::span<const view<const T, N>>` (`in_all`). The list is read during the call only; it may be empty, and may name
/// an array more than once. A call touches at most 65,535 arrays and futures.
template <detail::array_list List, class M = unmapped>
auto read_all(const List& list, M map = {}) {
  return detail::as_arrays<std::ranges::range_value_t<const List>>::template make<access_mode::read>(list,
                                                                                                     std::move(map));
}
/// The task writes every array of the list, each as `write(a, map)` would. An array that is named twice, or is another
/// argument too, is `error(overlapping_write)` at the call if the boxes overlap.
template <detail::array_list List, class M = unmapped>
auto write_all(const List& list, M map = {}) {
  return detail::as_arrays<std::ranges::range_value_t<const List>>::template make<access_mode::write>(list,
                                                                                                      std::move(map));
}
/// The task updates every array of the list, each as `update(a, map)` would; errors as for `write_all`.
template <detail::array_list List, class M = unmapped>
auto update_all(const List& list, M map = {}) {
  return detail::as_arrays<std::ranges::range_value_t<const List>>::template make<access_mode::update>(list,
                                                                                                       std::move(map));
}

}  // namespace troupe
