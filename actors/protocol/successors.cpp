// What this file is for: blocks for successors, and adding one while another thread may release those that are there.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/protocol/successors.hpp"

#include "actors/protocol/prefetch.hpp"

namespace troupe::detail {

namespace {
constexpr std::size_t blocks_at_once = 64;
}

successor_blocks::successor_blocks(successor_blocks* from) : from_(from ? *from : *this) {}
successor_blocks::~successor_blocks() = default;

void successor_blocks::make_more() {
  successor_block* const blocks = all_.emplace_back(std::make_unique<successor_block[]>(blocks_at_once)).get();
  for (std::size_t i = blocks_at_once; i != 0; --i) {
    blocks[i - 1].next = idle_;
    idle_ = &blocks[i - 1];
  }
}

successor_block* successor_blocks::take() {
  if (!idle_) idle_ = from_.outside_.exchange(nullptr, std::memory_order_acquire);
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

void successor_blocks::give_outside(successor_block* first) {
  if (!first) return;
  successor_block* before = outside_.load(std::memory_order_relaxed);
  do first->last->next = before;
  while (!outside_.compare_exchange_weak(before, first, std::memory_order_release, std::memory_order_relaxed));
}

void add_to_blocks(task_record& of, std::uint32_t place, std::uintptr_t edge, successor_blocks& pool) {
  const std::uint32_t index = (place - successors_inside) % successor_block::room;
  if (index == 0) {
    successor_block* const b = pool.take();
    if (place == successors_inside)
      of.more_successors = b;
    else
      of.more_successors->last->next = b;
    of.more_successors->last = b;
  }
  of.more_successors->last->edges[index] = edge;
}

}  // namespace troupe::detail
