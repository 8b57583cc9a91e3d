// What this file is for: the memory of what stages keep by key and time: counted, and under a limit.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not for users.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ranges>
#include <string>
#include <type_traits>
#include <utility>

#include <troupe/detail/streams/strand.hpp>
#include <troupe/error.hpp>
#include <troupe/stream/item.hpp>

namespace troupe::detail::streams {

/// What all stages of a stream may keep together. Any thread.
struct state_budget {
  std::atomic<std::uint64_t> bytes{0};
  std::uint64_t limit = 0;  ///< 0: none; set before the stream starts
};

/// What one lane of a stage keeps. Used by its strand, but for `used`.
class state_account {
 public:
  /// `of`: the stage's name; `from` may be set until the stream starts.
  state_account(const std::string& of, state_budget* const& from) : of_(of), from_(from) {}
  ~state_account() {
    if (from_) from_->bytes.fetch_sub(reserved_, std::memory_order_relaxed);
  }
  state_account(const state_account&) = delete;
  state_account& operator=(const state_account&) = delete;

  /// Throws error(out_of_memory), and counts nothing, if that is more than the stream may keep.
  void grow(std::size_t n) {
    make_room(n);
    used_.add(n);
  }
  /// Makes sure that so much more may be kept, for what cannot be undone otherwise. Throws as `grow`.
  void make_room(std::size_t n) {
    if (used_.get() + n > reserved_ && !reserve(used_.get() + n)) refuse(used_.get() + n);
  }
  /// Counts what has grown already, however much; `check` throws from then on if it was too much.
  void has_grown(std::size_t n) noexcept {
    if (used_.get() + n > reserved_) reserve(used_.get() + n, false);
    used_.add(n);
  }
  /// Throws error(out_of_memory) if the stages keep more than they may.
  void check() const {
    if (from_ && from_->limit != 0 && from_->bytes.load(std::memory_order_relaxed) > from_->limit) refuse(used_.get());
  }
  void shrink(std::size_t n) noexcept {
    used_.take(n);
    if (reserved_ - used_.get() < 4 * step) return;
    const std::uint64_t surplus = (reserved_ - used_.get()) / step * step - step;
    reserved_ -= surplus;
    if (from_) from_->bytes.fetch_sub(surplus, std::memory_order_relaxed);
  }
  std::uint64_t used() const noexcept { return used_.get(); }

 private:
  static constexpr std::uint64_t step = 16 * 1024;
  // False: it is too much, and nothing is reserved.
  bool reserve(std::uint64_t wanted, bool is_limited = true) noexcept {
    const std::uint64_t more = (wanted - reserved_ + step - 1) / step * step;
    if (from_) {
      const std::uint64_t all = from_->bytes.fetch_add(more, std::memory_order_relaxed) + more;
      if (is_limited && from_->limit != 0 && all > from_->limit) {
        from_->bytes.fetch_sub(more, std::memory_order_relaxed);
        return false;
      }
    }
    reserved_ += more;
    return true;
  }
  [[noreturn]] void refuse(std::uint64_t wanted) const {
    throw error(errc::out_of_memory, "stage '" + of_ + "' is to keep " + std::to_string(wanted) +
                                         " bytes, and all stages of the stream may keep " +
                                         std::to_string(from_->limit) +
                                         " (start_options::state_bytes, options::memory_bytes)");
  }
  const std::string& of_;
  state_budget* const& from_;
  tally used_;
  std::uint64_t reserved_ = 0;
};

/// The allocator of what a stage keeps.
template <class T>
class state_allocator {
 public:
  using value_type = T;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;
  explicit state_allocator(state_account& a) noexcept : to_(&a) {}
  template <class U>
  state_allocator(const state_allocator<U>& other) noexcept : to_(&other.account()) {}
  T* allocate(std::size_t n) {
    to_->grow(n * sizeof(T));
    try {
      return std::allocator<T>().allocate(n);
    } catch (...) {
      to_->shrink(n * sizeof(T));
      throw;
    }
  }
  void deallocate(T* p, std::size_t n) noexcept {
    std::allocator<T>().deallocate(p, n);
    to_->shrink(n * sizeof(T));
  }
  state_account& account() const noexcept { return *to_; }
  template <class U>
  bool operator==(const state_allocator<U>& other) const noexcept {
    return to_ == &other.account();
  }

 private:
  state_account* to_;
};

/// Whether all values of a type count as its own size.
template <class T>
inline constexpr bool counts_as_its_size = requires {
  troupe::stream::item_bytes<T>::is_its_size;
};
/// Whether counting takes no longer where there is more.
template <class T>
inline constexpr bool is_counted_at_once = false;
template <std::ranges::sized_range T>
requires std::is_trivially_copyable_v<std::ranges::range_value_t<T>>
inline constexpr bool is_counted_at_once<T> = true;

/// The bytes that a value has elsewhere, as `item_bytes` says.
template <class T>
std::size_t bytes_elsewhere(const T& x) noexcept {
  if constexpr (counts_as_its_size<T>)
    return 0;
  else
    return std::max(troupe::stream::item_bytes<T>::of(x), sizeof(T)) - sizeof(T);
}

/// What a value that changes has elsewhere, in an account. Looked at seldom where that takes long: what a container has
/// is summed up again when it may have grown by an eighth.
template <class T>
class counted_bytes {
 public:
  counted_bytes() = default;
  counted_bytes(counted_bytes&& o) noexcept
      : to_(o.to_), bytes_(std::exchange(o.bytes_, 0)), left_(std::exchange(o.left_, 0)), skipped_(o.skipped_) {}
  counted_bytes& operator=(counted_bytes&& o) noexcept {
    std::swap(to_, o.to_);
    std::swap(bytes_, o.bytes_);
    std::swap(left_, o.left_);
    std::swap(skipped_, o.skipped_);
    return *this;
  }
  ~counted_bytes() {
    if (bytes_ != 0) to_->shrink(bytes_);
  }
  /// The value has changed.
  void changed(state_account& to, const T& x) noexcept {
    if (left_ != 0) {
      --left_;
      return;
    }
    const std::size_t now = bytes_elsewhere(x);
    const std::size_t each = now > bytes_ ? (now - bytes_) / (skipped_ + 1) : 0;
    to_ = &to;
    if (now > bytes_) to.has_grown(now - bytes_);
    if (now < bytes_) to.shrink(bytes_ - now);
    bytes_ = now;
    skipped_ = left_ = is_counted_at_once<T> ? 0 : now / 8 / std::max(each, each_least);
  }

 private:
  static constexpr std::size_t each_least = 64;  // bytes by which a value grows at a time, as far as one can guess
  state_account* to_ = nullptr;
  std::size_t bytes_ = 0, left_ = 0, skipped_ = 0;  // changes until the next look; since the last one
};
template <class T>
requires counts_as_its_size<T>
class counted_bytes<T> {
 public:
  void changed(state_account&, const T&) noexcept {}
};

/// What a value has elsewhere that is kept as it is, counted once: what it points to may change.
template <class T>
class counted_once {
 public:
  /// Throws as `grow`.
  counted_once(state_account& to, const T& x) : bytes_(bytes_elsewhere(x)) { to.grow(bytes_); }
  void give_back(state_account& to) const noexcept { to.shrink(bytes_); }

 private:
  std::size_t bytes_;
};
template <class T>
requires counts_as_its_size<T>
class counted_once<T> {
 public:
  counted_once(state_account&, const T&) noexcept {}
  void give_back(state_account&) const noexcept {}
};

}  // namespace troupe::detail::streams
