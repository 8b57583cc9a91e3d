// What this file is for: a pool of records of one type in mapped slabs.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A client takes records, placement gives them back, mostly on another thread. So free records are in a few shards,
// each a chain behind a spin lock; a thread keeps to one shard. Memory is in slabs; `trim` returns slabs when no record
// is in use.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include <troupe/detail/spin_lock.hpp>
#include "actors/protocol/prefetch.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

namespace troupe::detail {

template <class T>
class shard_pool {
 public:
  /// `headroom_bytes`: address space that has to be left beside a new slab, or there is none; see check_headroom.
  explicit shard_pool(std::size_t headroom_bytes = 4u << 20) : headroom_bytes_(headroom_bytes) {}
  ~shard_pool() { free_slabs_beyond(0); }

  T* take() {
    shard& s = shards_[shard_of_thread()];
    {
      std::lock_guard hold(s.lock);
      if (T* t = s.free) {
        s.free = t->next;
        s.count.store(s.count.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
        ++s.taken;
        fetch_ahead(s.free);
        return t;
      }
    }
    return refill(s);
  }
  void give(T* t) noexcept { give_chain(t, t, 1); }
  /// Gives back `n` items, a chain linked by `next`.
  void give_chain(T* first, T* last, std::size_t n) noexcept {
    shard& s = shards_[shard_of_thread()];
    std::lock_guard hold(s.lock);
    s.add(first, last, n);
    s.given += n;
  }
  std::size_t in_use() const {
    std::size_t taken = 0, given = 0;
    for (const shard& s : shards_) {
      std::lock_guard hold(s.lock);
      taken += s.taken;
      given += s.given;
    }
    return taken - given;
  }
  std::size_t bytes() const {
    std::lock_guard hold(slabs_lock_);
    return slabs_.size() * slab_bytes;
  }
  /// Returns memory beyond `keep_bytes` to the system if nothing is in use; true if it did. All shards are locked
  /// meanwhile.
  bool trim(std::size_t keep_bytes) {
    if (bytes() <= keep_bytes) return false;
    for (shard& s : shards_) s.lock.lock();
    std::size_t taken = 0, given = 0;
    for (shard& s : shards_) {
      taken += s.taken;
      given += s.given;
    }
    const bool idle = taken == given;
    if (idle) {
      for (shard& s : shards_) {
        s.free = nullptr;
        s.count = 0;
      }
      std::lock_guard hold(slabs_lock_);
      free_slabs_beyond(keep_bytes / slab_bytes);
      for (T* items : slabs_) {
        chain_up(items);
        shards_[0].add(items, items + slab_items - 1, slab_items);
      }
    }
    for (shard& s : shards_) s.lock.unlock();
    return idle;
  }

 private:
  static constexpr std::size_t slab_items = 1024, slab_bytes = slab_items * sizeof(T);
  static constexpr std::size_t shard_count = 8;
  static constexpr std::size_t slabs_before_thrift = 4, worth_fetching = 64;

  struct alignas(64) shard {
    mutable spin_lock lock;
    T* free = nullptr;
    T* last = nullptr;                  // of the chain, unless it is empty
    std::atomic<std::size_t> count{0};  // changed under the lock, read without
    std::size_t taken = 0, given = 0;
    // Puts `n` items before the others.
    void add(T* first_of, T* last_of, std::size_t n) {
      last_of->next = free;
      if (!free) last = last_of;
      free = first_of;
      count.store(count.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    }
  };
  struct chain {
    T* first = nullptr;
    T* last = nullptr;
    std::size_t n = 0;
  };

  // Prefetches the next free item, which another core wrote last, while this thread fills in the item before it.
  static void fetch_ahead(T* next) {
    if (next) prefetch<(sizeof(T) + 63) / 64>(next);
  }

  static std::size_t shard_of_thread() {
    static std::atomic<std::size_t> next{0};
    thread_local const std::size_t mine = next.fetch_add(1, std::memory_order_relaxed) % shard_count;
    return mine;
  }

  T* refill(shard& s) {
    {
      // Counted first: from here on trim() leaves the memory alone.
      std::lock_guard hold(s.lock);
      ++s.taken;
    }
    chain got = fetch(s);
    if (!got.first) {
      try {
        got = make_slab();
      } catch (...) {
        std::lock_guard hold(s.lock);
        --s.taken;
        throw;
      }
    }
    if (T* rest = got.first->next) {
      fetch_ahead(rest);
      std::lock_guard hold(s.lock);
      s.add(rest, got.last, got.n - 1);
    }
    return got.first;
  }

  // Takes the chain of another shard: records flow from clients to placement. A shard that is given more than is taken
  // from it comes first: clients that took each other's chains would do so again and again. Short chains are left alone
  // while there is little memory: fetching items one by one costs more than a new slab.
  chain fetch(const shard& mine) {
    const bool few = slab_count_.load(std::memory_order_relaxed) < slabs_before_thrift;
    const std::size_t least = few ? worth_fetching : 1;
    for (const bool any : {false, true})
      for (shard& other : shards_) {
        if (&other == &mine || other.count.load(std::memory_order_relaxed) < least) continue;
        std::lock_guard hold(other.lock);
        if (!other.free || !(any || other.given > other.taken)) continue;
        const std::size_t n = other.count.exchange(0, std::memory_order_relaxed);
        return {std::exchange(other.free, nullptr), other.last, n};
      }
    return {};
  }
  static void chain_up(T* items) {
    for (std::size_t i = 0; i < slab_items; ++i) items[i].next = i + 1 < slab_items ? &items[i + 1] : nullptr;
  }
  // Makes a slab. It is mapped, not taken from the heap, so that trimming gives it back to the system.
  chain make_slab() {
    check_headroom();
    // MAP_POPULATE: all of it is written at once, so the system may as well bring the pages in one go.
    constexpr int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE;
    void* memory = ::mmap(nullptr, slab_bytes, PROT_READ | PROT_WRITE, how, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    T* items = static_cast<T*>(memory);
    std::uninitialized_default_construct_n(items, slab_items);
    chain_up(items);
    std::lock_guard hold(slabs_lock_);
    try {
      slabs_.push_back(items);
    } catch (...) {
      std::destroy_n(items, slab_items);
      ::munmap(memory, slab_bytes);
      throw;
    }
    slab_count_.store(slabs_.size(), std::memory_order_relaxed);
#if defined(__SANITIZE_ADDRESS__)  // what a record holds of the heap is in use as long as the record
    __lsan_register_root_region(memory, slab_bytes);
#endif
    return {items, items + slab_items - 1, slab_items};
  }
  // Throws std::bad_alloc if too little address space is left for another slab: ordering and placing its records needs
  // memory, too, and may not fail.
  void check_headroom() const {
    if (headroom_bytes_ == 0) return;
    const std::size_t bytes = headroom_bytes_ + slab_count_.load(std::memory_order_relaxed) * slab_bytes / 8;
    void* const there = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (there == MAP_FAILED) throw std::bad_alloc();
    ::munmap(there, bytes);
  }
  // Unmaps slabs until `kept` are left. Called with slabs_lock_ held.
  void free_slabs_beyond(std::size_t kept) {
    while (slabs_.size() > kept) {
      std::destroy_n(slabs_.back(), slab_items);
#if defined(__SANITIZE_ADDRESS__)
      __lsan_unregister_root_region(slabs_.back(), slab_bytes);
#endif
      ::munmap(slabs_.back(), slab_bytes);
      slabs_.pop_back();
    }
    slabs_.shrink_to_fit();
    slab_count_.store(slabs_.size(), std::memory_order_relaxed);
  }

  const std::size_t headroom_bytes_;
  mutable shard shards_[shard_count];
  mutable std::mutex slabs_lock_;
  std::vector<T*> slabs_;
  std::atomic<std::size_t> slab_count_{0};
};

}  // namespace troupe::detail
