// What this file is for: large items whose memory is used again by later ones: frames, blocks.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A frame that is allocated anew comes from memory that no cache has, and gives a cost to each page; few frames that
// are used again stay in the cache of the cores that work on them.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <troupe/stream/item.hpp>

namespace troupe::stream {

template <class T>
class recycler;

/// An object that goes back to its recycler with the handle, as it is. Moved, not copied. Empty after a move.
template <class T>
class recycled {
 public:
  recycled() = default;
  recycled(recycled&&) noexcept = default;
  recycled& operator=(recycled&& o) noexcept {
    recycled taken(std::move(o));
    std::swap(at_, taken.at_);
    std::swap(home_, taken.home_);
    return *this;
  }
  ~recycled() {
    if (at_) home_->give_back(std::move(at_));
  }
  T& operator*() const { return *at_; }
  T* operator->() const { return at_.get(); }
  explicit operator bool() const { return at_ != nullptr; }

 private:
  friend class recycler<T>;
  struct home {
    std::mutex lock;
    std::vector<std::unique_ptr<T>> idle;
    std::size_t kept_max = 0;
    std::function<T()> make;
    void give_back(std::unique_ptr<T> t) noexcept {
      std::lock_guard hold(lock);
      if (idle.size() < kept_max) idle.push_back(std::move(t));  // room was reserved
    }
  };
  recycled(std::unique_ptr<T> at, std::shared_ptr<home> h) : at_(std::move(at)), home_(std::move(h)) {}
  std::unique_ptr<T> at_;
  std::shared_ptr<home> home_;
};

/// Gives objects out and takes them back. A handle: copies are the same recycler. Any thread. How many are out at once
/// is bounded by what holds them: the edges of a stream.
template <class T>
class recycler {
 public:
  /// Keeps that many at most for later. New ones are `T()`.
  explicit recycler(std::size_t kept_max = 64) requires std::default_initializable<T>
      : recycler(kept_max, [] { return T(); }) {}
  /// The same; new ones are what `make` returns, which any thread may call.
  recycler(std::size_t kept_max, std::function<T()> make) : home_(std::make_shared<typename recycled<T>::home>()) {
    home_->kept_max = kept_max;
    home_->make = std::move(make);
    home_->idle.reserve(kept_max);
  }
  /// Returns the object that came back last, with what it held, or a new one. Throws what making it throws.
  recycled<T> take() const {
    std::unique_ptr<T> t;
    {
      std::lock_guard hold(home_->lock);
      if (!home_->idle.empty()) {
        t = std::move(home_->idle.back());
        home_->idle.pop_back();
      }
    }
    if (!t) t = std::unique_ptr<T>(new T(home_->make()));
    return {std::move(t), home_};
  }

 private:
  std::shared_ptr<typename recycled<T>::home> home_;
};

/// Counts with what it points to.
template <class T>
struct item_bytes<recycled<T>> {
  static std::size_t of(const recycled<T>& r) noexcept { return sizeof r + (r ? item_bytes<T>::of(*r) : 0); }
};

}  // namespace troupe::stream
