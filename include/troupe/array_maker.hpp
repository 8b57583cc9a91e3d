// What this file is for: array, filled, adopt and borrow, with which a runtime or a recorder of graphs makes arrays.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <troupe/array.hpp>
#include <troupe/detail/engine.hpp>
#include <troupe/error.hpp>
#include <troupe/options.hpp>

namespace troupe {

/// The members of `runtime` and `recorder` that make arrays:
/// `rt.filled<float>({1000, 1000}, tiles(256, 256), 0, "sharp")`. All may be called from any thread and from inside
/// tasks; none waits for a task. All throw `error(bad_argument)` for negative sizes, tiles below 1, more than 4e9
/// tiles, arrays that cannot be addressed, and replicas other than 1 and 2.
template <class Derived>
class array_maker {
 public:
  /// A new array. A tile gets its bytes when it is first written; reading elements that were never written is an error.
  /// Without tiles the array is one tile. The name is for errors and traces.
  ///
  /// Tiles of a multiple of 64 bytes, in an array cut along its first dimension only, lie one behind the other: what is
  /// larger than a tile, such as `all{}` or a host view of the array, is shown where it is. Of other arrays each task
  /// that asks for such a box gets a copy. So it may be with arrays that are read through windows with borders, whose
  /// tiles then have room around them, and with those that devices or other nodes write; and it is under
  /// `options::memory_bytes`.
  template <class T, std::size_t N>
  troupe::array<T, static_cast<int>(N)> array(const index_t (&size)[N], std::string name = {},
                                              const array_options& how = {}) {
    return make<T, static_cast<int>(N)>(sizes(size), sizes(size), std::move(name), nullptr, how);
  }
  template <class T, std::size_t N>
  troupe::array<T, static_cast<int>(N)> array(const index_t (&size)[N], const tile_shape<static_cast<int>(N)>& t,
                                              std::string name = {}, const array_options& how = {}) {
    return make<T, static_cast<int>(N)>(sizes(size), t.size, std::move(name), nullptr, how);
  }
  template <class T, int N>
  troupe::array<T, N> array(const extent<N>& size, const tile_shape<N>& t, std::string name = {},
                            const array_options& how = {}) {
    return make<T, N>(size, t.size, std::move(name), nullptr, how);
  }
  /// A new array with every element equal to `value`, which has at most 256 bytes.
  template <class T, std::size_t N>
  troupe::array<T, static_cast<int>(N)> filled(const index_t (&size)[N], const tile_shape<static_cast<int>(N)>& t,
                                               const T& value, std::string name = {}, const array_options& how = {}) {
    static_assert(
        sizeof(T) <= detail::filled_bytes_max,
        "elements of filled arrays have at most 256 bytes: make the array with array() and write it in a task");
    return make<T, static_cast<int>(N)>(sizes(size), t.size, std::move(name), &value, how);
  }
  /// Takes over a vector as a row-major array, without copying; it is freed with the array. `error(bad_argument)`
  /// unless its size is the product of the sizes.
  template <class T, std::size_t N>
  troupe::array<T, static_cast<int>(N)> adopt(std::vector<T> data, const index_t (&size)[N],
                                              const tile_shape<static_cast<int>(N)>& t, std::string name = {},
                                              const array_options& how = {}) {
    auto kept = std::make_shared<std::vector<T>>(std::move(data));
    const std::span<T> bytes(*kept);
    return adopt_shared<T, static_cast<int>(N)>(std::move(kept), bytes, sizes(size), t.size, std::move(name), how);
  }
  template <class T>
  troupe::array<T, 1> adopt(std::vector<T> data, std::string name = {}, const array_options& how = {}) {
    const index_t n[1] = {static_cast<index_t>(data.size())};
    return adopt<T, 1>(std::move(data), n, tile_shape<1>{{{n[0]}}}, std::move(name), how);
  }
  /// Uses row-major memory of the caller; `error(bad_argument)` unless it has as many elements as the product of the
  /// sizes. The caller keeps the memory alive and untouched until the last handle is destroyed; host views count as
  /// handles. That destructor waits until the tasks that use the array are done and their results are in the memory.
  ///
  /// The destructor does not wait inside a task that uses the array, while its thread holds a host view that such a
  /// task needs closed, or if tasks have captured the handle, or a recorded graph or a run of one that has not ended
  /// keeps it. Then the memory is the caller's again after `wait_all()`. Bodies that `shutdown` has left behind may go
  /// on using it.
  template <class T, std::size_t N>
  troupe::array<T, static_cast<int>(N)> borrow(std::span<T> data, const index_t (&size)[N],
                                               const tile_shape<static_cast<int>(N)>& t, std::string name = {},
                                               const array_options& how = {}) {
    return adopt_shared<T, static_cast<int>(N)>(nullptr, data, sizes(size), t.size, std::move(name), how);
  }

 protected:
  array_maker() = default;
  ~array_maker() = default;

 private:
  template <std::size_t N>
  static extent<static_cast<int>(N)> sizes(const index_t (&list)[N]) {
    extent<static_cast<int>(N)> e;
    for (std::size_t d = 0; d < N; ++d) e[static_cast<int>(d)] = list[d];
    return e;
  }

  template <class T, int N>
  troupe::array<T, N> make(const extent<N>& size, const extent<N>& tile, std::string name, const T* fill,
                           const array_options& how) {
    detail::array_spec s = spec<T, N>(size, tile, std::move(name), how);
    s.fill = fill;
    return troupe::array<T, N>(detail::new_array(the_engine(), std::move(s)), whole(size));
  }
  template <class T, int N>
  troupe::array<T, N> adopt_shared(std::shared_ptr<void> owner, std::span<T> data, const extent<N>& size,
                                   const extent<N>& tile, std::string name, const array_options& how) {
    detail::array_spec s = spec<T, N>(size, tile, std::move(name), how);
    if (static_cast<index_t>(data.size()) != whole(size).volume())
      throw error(errc::bad_argument, "the data has " + std::to_string(data.size()) + " elements, the array " +
                                          std::to_string(whole(size).volume()));
    s.owner = std::move(owner);
    s.adopted = data.data();
    return troupe::array<T, N>(detail::new_array(the_engine(), std::move(s)), whole(size));
  }
  template <class T, int N>
  static detail::array_spec spec(const extent<N>& size, const extent<N>& tile, std::string name,
                                 const array_options& how) {
    static_assert(N >= 1 && N <= rank_max, "arrays have 1 to 4 dimensions");
    detail::array_spec s;
    s.rank = N;
    for (int d = 0; d < N; ++d) {
      s.size[d] = size[d];
      s.tile[d] = tile[d];
    }
    s.element = sizeof(T);
    s.align = alignof(T);
    s.name = std::move(name);
    s.replicas = how.replicas;
    return s;
  }
  detail::engine& the_engine() const { return *static_cast<const Derived*>(this)->submission_target().the_engine; }
};

}  // namespace troupe
