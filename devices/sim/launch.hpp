// What this file is for: a kernel's launch, and what runs its work-items on a stream's thread.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "devices/sim/fibre.hpp"
#include "devices/sim/sim.h"

namespace troupe::soft_gpu {

/// A launch that needs nothing more of its caller: arguments copied, pointers translated.
struct launch {
  sim_invoke invoke = nullptr;
  bool barriers = false;
  dim3 groups, group;
  std::unique_ptr<std::byte[]> storage;
  std::vector<void*> arguments;
  std::shared_ptr<const sim_watch> watch;
  std::uint64_t number = 0;
};

/// Runs launches one after another, group by group; keeps fibres and local memory for the next ones.
class kernel_runner {
 public:
  /// Empty, or why the kernel failed.
  std::string run(const launch&);
  /// That was for an access outside of an array.
  bool left_an_array() const { return left_an_array_; }

 private:
  struct item : troupe_sim_item {
    kernel_runner* runner = nullptr;
    int index = 0;  // in the group
    void** arguments = nullptr;
    sim_invoke invoke = nullptr;
  };
  struct local_array {
    const void* key;
    std::size_t bytes;
    std::unique_ptr<std::max_align_t[]> memory;
    bool used;  // by the group that runs
  };

  static void wait_for_group(const troupe_sim_item*);
  static void* find_local(const troupe_sim_item*, const void* key, unsigned long bytes);
  [[noreturn]] static void complain(const troupe_sim_item*, const char* array, int rank, const long* at, const long* lo,
                                    const long* hi);
  static void run_in_fibre(void*);

  void run_plain(const launch&, item&);
  void run_with_barriers(const launch&, std::size_t count);
  void prepare(item&, const launch&, dim3 local);
  template <class F>
  void for_each_group(const launch&, F&&);
  void fail(const char* why);

  std::vector<item> items_;
  std::vector<std::unique_ptr<fibre>> fibres_;
  std::vector<local_array> locals_;
  bool fibres_on_ = false, failed_ = false, left_an_array_ = false;
  std::size_t count_ = 0;
  std::string why_;
};

}  // namespace troupe::soft_gpu
