// What this file is for: blocks for successors, and adding one while another thread may release those that are there.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/protocol/successors.hpp"

#include "actors/protocol/prefetch.hpp"

namespace troupe::detail {

namespace {
constexpr std::size_t blocks_at_once = 64;
}

successor_blocks::successor_blocks() = default;
successor_blocks::~successor_blocks() = default;

void successor_blocks::make_more() {
  successor_block* const blocks = all_.emplace_back(std::make_unique<successor_block[]>(blocks_at_once)).get();
  for (std::size_t i = blocks_at_once; i != 0; --i) {
    blocks[i - 1].next = idle_;
    idle_ = &blocks[i - 1];
  }
}

successor_block* successor_blocks::take() {
  if (!idle_) make_more();
  successor_block* const b = std::exchange(idle_, idle_->next);
  if (idle_) prefetch<1>(idle_);  // take() will read its `next`, written long before
  b->next = nullptr;
  return b;
}

void successor_blocks::give(successor_block* first) {
  if (!first) return;
  first->last->next = idle_;
  idle_ = first;
}

bool add_successor(detail::task_record& of, successor s, bool shared, successor_blocks& pool) {
  std::uint32_t n = of.successor_count.load(std::memory_order_acquire);
  if (n & sealed_bit) return false;
  // Whoever seals the list meanwhile looks at nothing beyond the count, neither edges nor blocks.
  if (n < 3) {
    of.successors[n] = s.edge();
  } else {
    const std::uint32_t index = (n - 3) % successor_block::room;
    if (index == 0) {
      successor_block* const b = pool.take();
      if (n == 3)
        of.more_successors = b;
      else
        of.more_successors->last->next = b;
      of.more_successors->last = b;
    }
    of.more_successors->last->edges[index] = s.edge();
  }
  if (shared) return of.successor_count.compare_exchange_strong(n, n + 1, std::memory_order_acq_rel);
  of.successor_count.store(n + 1, std::memory_order_relaxed);
  return true;
}

}  // namespace troupe::detail
