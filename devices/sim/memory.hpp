// What this file is for: the memory of one simulated device: the host has its addresses, only the engine can read it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

namespace troupe::soft_gpu {

/// Mapped twice: the addresses handed out fault on every access; those that `alias` gives do not.
class device_memory {
 public:
  /// The lease of one allocation; a block that is given again in the order of a stream has a new one.
  struct lease {
    void* address;
    std::size_t size, requested;
    std::uint64_t id;
  };

  /// Has no room at all if the system gives none.
  explicit device_memory(std::size_t capacity);
  ~device_memory();
  device_memory(const device_memory&) = delete;
  device_memory& operator=(const device_memory&) = delete;

  /// Nothing if there is no room. Blocks that `stream` is about to free count as room: its order makes them safe.
  std::optional<lease> reserve(std::size_t bytes, const void* stream);
  /// Fills the block with 0xFF and its gap with the pattern.
  void prepare(const lease&) const;
  /// Declares the block free for what `stream` does later. Nothing if it is no live allocation.
  std::optional<lease> retire(void*, const void* stream);
  /// Fills the block with 0xDB and makes it free for all. False if something was written beyond its end.
  bool release(const lease&);
  void release_all();

  bool contains(const void*) const noexcept;
  std::byte* alias(const void*) const noexcept;
  /// All bytes belong to one live allocation.
  bool live(const void*, std::size_t bytes) const;
  std::size_t live_count() const;
  std::size_t used() const;
  std::size_t capacity() const noexcept { return capacity_; }

 private:
  struct block {
    std::size_t size, requested;
    std::uint64_t id;
    bool retired;
    const void* stream;
  };

  void give_back(std::size_t offset, std::size_t size);
  lease lease_of(std::size_t offset, const block&) const;

  std::size_t capacity_ = 0, span_ = 0;
  std::byte *va_ = nullptr, *alias_ = nullptr;
  mutable std::mutex mutex_;
  std::map<std::size_t, block> blocks_;       // by offset
  std::map<std::size_t, std::size_t> holes_;  // size by offset
  std::size_t used_ = 0;
  std::uint64_t ids_ = 0;
};

}  // namespace troupe::soft_gpu
