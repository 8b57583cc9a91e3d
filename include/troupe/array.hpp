// What this file is for: arrays, the handles that tasks share, and the views by which the host reads and writes them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <troupe/box.hpp>
#include <troupe/detail/deadline.hpp>
#include <troupe/detail/engine.hpp>
#include <troupe/view.hpp>

namespace troupe {

/// A host view gives the host access to a box of an array, as RAII: tasks that conflict with it wait while it lives,
/// and go on when it is destroyed. `array::read`, `write` and `update` make it. Movable, not copyable; use it on one
/// thread at a time. It keeps the array alive, as a handle does.
///
/// A thread that holds a view must not wait for a task that conflicts with it, directly or through other tasks: that
/// wait would never end. If the view is in a variable on the thread's own stack, `get`, `wait`, `wait_all` and further
/// host accesses throw `error(would_deadlock)`. Destroy the view first, or move it to the thread that is to close it.
template <class T, int N>
class host_view : public view<T, N> {
 public:
  /// A view of nothing, which holds back no task.
  host_view() = default;
  /// Moves the access; `o` holds none afterwards.
  host_view(host_view&& o) noexcept : view<T, N>(o), access_(std::exchange(o.access_, nullptr)) {
    if (access_) detail::hold_host(access_, this);
  }
  /// Closes this view, then moves the access; `o` holds none afterwards.
  host_view& operator=(host_view&& o) noexcept {
    if (this != &o) {
      close();
      view<T, N>::operator=(o);
      access_ = std::exchange(o.access_, nullptr);
      if (access_) detail::hold_host(access_, this);
    }
    return *this;
  }
  /// `close()`.
  ~host_view() { close(); }

  /// Ends the access now; what was written becomes visible to tasks.
  void close() noexcept {
    if (access_) detail::close_host(std::exchange(access_, nullptr));
  }

 private:
  friend class array<std::remove_const_t<T>, N>;
  host_view(const detail::raw_view& raw, detail::host_access* a) : view<T, N>(raw), access_(a) {
    detail::hold_host(access_, this);
  }
  detail::host_access* access_ = nullptr;
};

/// An array is a handle of N-dimensional data in tiles. A runtime makes it: `rt.array`, `filled`, `adopt`, `borrow`
/// (array_maker.hpp).
///
/// Ownership: handles are cheap to copy; copies name the same data, and the last handle to go releases the bytes.
/// Handles may outlive their runtime; using one then throws `error(runtime_stopped)`.
///
/// Threads: handles may be copied and dropped on any thread; one handle object must not be changed by two threads at
/// once, as with `shared_ptr`.
///
/// Elements are trivially copyable and have an alignment of at most `element_align_max` (64 bytes, as vector registers
/// and cache lines want), which every view keeps.
template <class T, int N>
class array {
  static_assert(std::is_trivially_copyable_v<T>, "array elements are trivially copyable");
  static_assert(
      alignof(T) <= element_align_max,
      "array elements have an alignment of at most 64 bytes (troupe::element_align_max), which views keep: take "
      "alignas off the element type, or give it less; its size may stay as it is");
  static_assert(N >= 1 && N <= rank_max, "arrays have 1 to 4 dimensions");

 public:
  using value_type = T;
  static constexpr int rank = N;

  /// An empty handle. Using it in a call throws `error(bad_argument)`.
  array() = default;
  array(const array& o) : core_(o.core_), runtime_of_tile_(o.runtime_of_tile_), limit_(o.limit_) {
    if (core_) detail::retain(core_);
  }
  array(array&& o) noexcept
      : core_(std::exchange(o.core_, nullptr)), runtime_of_tile_(o.runtime_of_tile_), limit_(o.limit_) {}
  // Two of them: of a parameter by value Clang 14 forgets the destructor where a template assigns `{}`.
  array& operator=(const array& o) noexcept { return *this = array(o); }
  array& operator=(array&& o) noexcept {
    array taken(std::move(o));
    std::swap(core_, taken.core_);
    std::swap(runtime_of_tile_, taken.runtime_of_tile_);
    std::swap(limit_, taken.limit_);
    return *this;
  }
  ~array() {
    if (core_) detail::release_and_wait(core_);
  }

  /// True unless the handle is empty.
  explicit operator bool() const { return core_ != nullptr; }
  /// Elements along dimension d (of the sub-array, where this is one).
  index_t size(int d) const { return limit_.size(d); }
  /// Elements along each dimension.
  extent<N> size() const {
    extent<N> e;
    for (int d = 0; d < N; ++d) e[d] = limit_.size(d);
    return e;
  }
  /// Number of elements.
  index_t volume() const { return limit_.volume(); }
  /// Tile size along dimension d. Throws `error(bad_argument)` for an empty handle.
  index_t tile(int d) const { return detail::spec_of(used()).tile[d]; }
  /// The name that the array was given; empty if none. Throws `error(bad_argument)` for an empty handle.
  const std::string& name() const { return detail::spec_of(used()).name; }

  /// A handle of a box of this array; coordinates start at 0 again and borders apply at its edges. Shares bytes and
  /// ordering with the whole. Throws `error(out_of_bounds)` if the box leaves the array or has no elements,
  /// `error(bad_argument)` for an empty handle.
  array sub(const box<N>& b) const {
    if (b.empty())
      throw error(errc::out_of_bounds, "sub-array " + to_string(b) + " of array '" + name() + "' of " +
                                           to_string(whole(size())) +
                                           " has no elements: along each dimension its end must be behind its begin");
    if (!whole(size()).contains(b))
      throw error(errc::out_of_bounds,
                  "sub-array " + to_string(b) + " is not inside array '" + name() + "' of " + to_string(whole(size())));
    array r(*this);
    r.runtime_of_tile_ = nullptr;
    for (int d = 0; d < N; ++d) {
      r.limit_.lo[d] = limit_.lo[d] + b.lo[d];
      r.limit_.hi[d] = limit_.lo[d] + b.hi[d];
    }
    return r;
  }

  /// Waits for the tasks that write this array, then gives the host read access. The view is shown where the elements
  /// are if the array is adopted, or has one tile, or tiles one behind the other (`rt.array`): a whole array is
  /// contiguous then, rows of a sub-array lie as `view::stride` says. Else it is a contiguous copy made for the
  /// occasion. Throws what the writing task threw, and `error(uninitialized_read)`.
  host_view<const T, N> read() const { return *open<const T>(access_mode::read, forever()); }
  /// Waits for readers and writers, then gives write access; every element must be written. Rows lie as `view::stride`
  /// says. If it throws, the elements stay as they are.
  host_view<T, N> write() const { return *open<T>(access_mode::write, forever()); }
  /// As `write`, but the old elements may be read and kept. If it throws because elements are in error, all of this
  /// array (or sub-array) is in error afterwards, as what a task updates that cannot run; else they stay as they are.
  host_view<T, N> update() const { return *open<T>(access_mode::update, forever()); }
  /// As `read`; empty if access was not granted within the limit.
  template <class Rep, class Period>
  std::optional<host_view<const T, N>> try_read_for(std::chrono::duration<Rep, Period> limit) const {
    return open<const T>(access_mode::read, detail::deadline_after(limit));
  }

  /// Used by the library.
  detail::array_core* core() const { return core_; }
  const box<N>& limit() const { return limit_; }
  array(detail::array_core* adopt_reference, const box<N>& limit)
      : core_(adopt_reference), runtime_of_tile_(detail::runtime_of_tile(*adopt_reference)), limit_(limit) {}
  /// Where the array lives if it is one tile and this handle means all of it: such an access needs no look at the
  /// array, whose cache lines are elsewhere. Else null.
  const detail::runtime_state* runtime_of_tile() const { return runtime_of_tile_; }

 private:
  detail::array_core& used() const {
    if (!core_) throw error(errc::bad_argument, "an empty array handle");
    return *core_;
  }
  static std::chrono::steady_clock::time_point forever() { return std::chrono::steady_clock::time_point::max(); }
  template <class V>
  std::optional<host_view<V, N>> open(access_mode mode, std::chrono::steady_clock::time_point deadline) const {
    if (!core_) throw error(errc::bad_argument, "host access to an empty array handle");
    std::array<index_t, rank_max> lo{}, hi{1, 1, 1, 1};
    for (int d = 0; d < N; ++d) {
      lo[d] = limit_.lo[d];
      hi[d] = limit_.hi[d];
    }
    detail::raw_view raw;
    detail::host_access* a = detail::open_host(*core_, mode, lo, hi, raw, deadline);
    if (!a) return std::nullopt;
    for (int d = 0; d < N; ++d) {
      raw.hi[d] -= limit_.lo[d];
      raw.lo[d] -= limit_.lo[d];
    }
    return host_view<V, N>(raw, a);
  }

  detail::array_core* core_ = nullptr;
  const detail::runtime_state* runtime_of_tile_ = nullptr;
  box<N> limit_{};
};

}  // namespace troupe
