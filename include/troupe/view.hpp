// What this file is for: what a kernel body sees of an array: a pointer with strides over one declared box.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include <troupe/box.hpp>
#include <troupe/error.hpp>

/// TROUPE_ASSERT, the one macro, checks every element access against the declared box in builds without NDEBUG. Define
/// it yourself before the first troupe header to choose otherwise.
#ifndef TROUPE_ASSERT
#ifdef NDEBUG
#define TROUPE_ASSERT(condition, otherwise) static_cast<void>(0)
#else
#define TROUPE_ASSERT(condition, otherwise) ((condition) ? static_cast<void>(0) : (otherwise))
#endif
#endif

namespace troupe {

/// Alignment in bytes at which views of whole tiles begin, partials, and copies that are made for windows and host
/// views. Elements whose type asks for more do not compile. Parts of tiles, windows that are shown where their tile is,
/// and boxes over several tiles that lie one behind the other begin where their first element is; memory that is
/// adopted or borrowed lies as its owner has placed it.
inline constexpr std::size_t element_align_max = 64;

namespace detail {
/// A view without its type: what executors fill in and hand to bodies. Strides count elements; that of the array's last
/// dimension is 1, unless there are no elements.
struct raw_view {
  std::byte* data = nullptr;  // the element at lo
  std::array<index_t, rank_max> lo{}, hi{}, stride{};
  const char* name = "";
};
}  // namespace detail

/// A view is what a body sees of an array: a pointer with strides over the elements of one box. It is a value, owns
/// nothing, and is valid only while the body runs, or while the host view that it came from exists. It does not
/// synchronise: the runtime has already ordered the tasks.
///
/// Coordinates are those of the array that was passed, so a window may be indexed below zero or beyond the extent,
/// where its border rule put values.
template <class T, int N>
class view {
  static_assert(N >= 1 && N <= rank_max, "views have 1 to 4 dimensions");

 public:
  using value_type = std::remove_const_t<T>;

  /// A view of nothing.
  view() = default;
  /// Used by the library.
  explicit view(const detail::raw_view& raw) : data_(reinterpret_cast<T*>(raw.data)), name_(raw.name) {
    for (int d = 0; d < N; ++d) {
      box_.lo[d] = raw.lo[d];
      box_.hi[d] = raw.hi[d];
      stride_[d] = raw.stride[d];
    }
    auto origin = reinterpret_cast<std::uintptr_t>(raw.data);
    for (int d = 0; d < N; ++d)
      origin -= static_cast<std::uintptr_t>(box_.lo[d]) * static_cast<std::uintptr_t>(step(d)) * sizeof(T);
    origin_ = reinterpret_cast<T*>(origin);
  }

  /// The element at the given array coordinates. Outside `bounds()` builds with checks throw `error(out_of_bounds)`,
  /// which names the array, the point and the box; in other builds the behaviour is undefined.
  template <class... I>
  T& operator()(I... i) const {
    static_assert(sizeof...(I) == N, "one coordinate per dimension");
    const std::array<index_t, N> p{static_cast<index_t>(i)...};
    TROUPE_ASSERT(box_.contains(p), refuse(p));
    return origin_[offset(p)];
  }

  /// The element at the given array coordinates, checked in every build: throws `error(out_of_bounds)` outside
  /// `bounds()`.
  template <class... I>
  T& at(I... i) const {
    static_assert(sizeof...(I) == N, "one coordinate per dimension");
    const std::array<index_t, N> p{static_cast<index_t>(i)...};
    if (!box_.contains(p)) refuse(p);
    return origin_[offset(p)];
  }

  /// The element at `bounds().lo`; further elements by `stride`.
  T* data() const { return data_; }
  /// Distance in elements between neighbours along dimension d: 1 along the last one. Along others it may be more than
  /// the view has elements: in parts of tiles, and in tiles of arrays that are read through windows.
  index_t stride(int d) const { return stride_[d]; }
  /// The declared box, in array coordinates.
  const box<N>& bounds() const { return box_; }
  /// The first coordinate of the box along dimension d.
  index_t lo(int d) const { return box_.lo[d]; }
  /// The coordinate behind the last one of the box along dimension d.
  index_t hi(int d) const { return box_.hi[d]; }
  /// Elements along dimension d.
  index_t size(int d) const { return box_.size(d); }
  /// Number of elements.
  index_t volume() const { return box_.volume(); }
  /// The name the array was given; empty if none.
  const char* name() const { return name_; }

  /// The same elements, not to be changed.
  operator view<const T, N>() const requires(!std::is_const_v<T>) { return view<const T, N>(raw()); }
  /// Used by the library.
  detail::raw_view raw() const {
    detail::raw_view r;
    r.data = const_cast<std::byte*>(reinterpret_cast<const std::byte*>(data_));
    r.name = name_;
    for (int d = 0; d < N; ++d) {
      r.lo[d] = box_.lo[d];
      r.hi[d] = box_.hi[d];
      r.stride[d] = stride_[d];
    }
    return r;
  }

 private:
  // Returns the stride. Compilers vectorise loops along the last dimension, because they see that it is contiguous.
  index_t step(int d) const { return d == N - 1 ? 1 : stride_[d]; }
  // Returns the elements from `origin_` to a point. With `lo` subtracted here, each of a chain of reads, where an
  // element says which one is next, took a fifth longer than through a pointer.
  index_t offset(const std::array<index_t, N>& p) const {
    index_t o = p[N - 1];
    for (int d = 0; d < N - 1; ++d) o += p[d] * stride_[d];
    return o;
  }
  [[noreturn]] void refuse(const std::array<index_t, N>& p) const {
    std::string point;
    for (int d = 0; d < N; ++d) {
      if (d) point += ',';
      point += std::to_string(p[d]);
    }
    throw error(errc::out_of_bounds, "array '" + std::string(name_) + "': element (" + point +
                                         ") is outside the declared box " + to_string(box_));
  }

  T* data_ = nullptr;
  T* origin_ = nullptr;  // where the element at (0, 0, ..) would be
  box<N> box_{};
  std::array<index_t, N> stride_{};
  const char* name_ = "";
};

}  // namespace troupe
