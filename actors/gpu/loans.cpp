// What this file is for: a device's memory and the tiles of it that are lent, or that others lend.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "actors/gpu/boxes.hpp"
#include "actors/gpu/memory.hpp"
#include "actors/memory/host_tiles.hpp"

namespace troupe::detail {

using logic::replica;

// ---- the lender -----------------------------------------------------------------------------------------------------

// Returns true if the tile had been evicted and is being copied in again, of which placement knows nothing: no bytes
// can be lent yet.
bool gpu_memory::is_coming(const array_core& a, std::uint32_t tile) {
  const replica* r = find(a, tile);
  return r && r->filled && !lanes_.has_reached(r->ready.lane, r->ready.until);
}

void gpu_memory::lend(const std::shared_ptr<peer_loan>& loan) {
  replica* r = find(*loan->array, loan->tile);
  // The tile has gone home, or is on its way: the next writer must come after that copy.
  if (!r || !r->filled || r->leaving || r->version != loan->version || !take_back(*r)) {
    loan->call_back();
    return;
  }
  cache_.touch(*r);
  r->loan = loan;
  loan->open(r->memory);
}

bool gpu_memory::take_back(replica& r) {
  if (!r.loan) return true;
  if (!r.loan->call_back()) return false;
  if (r.loan->is_replaced()) r.dirty = false;
  r.loan = nullptr;
  return true;
}

void gpu_memory::break_loans() {
  cache_.each([](const replica& r) {
    if (r.loan) r.loan->break_off();
  });
}

// ---- the borrower ---------------------------------------------------------------------------------------------------

namespace {
// Calls `f` with the loans of tiles that the task writes.
template <class F>
void each_replaced(const gpu_job& j, F&& f) {
  for (const gpu_job::held& h : j.copies)
    for (const auto& loan : j.loans)
      if (h.written && loan->array == h.copy->array && loan->tile == h.copy->tile) f(*loan);
}
}  // namespace

bool gpu_memory::begin_loans(gpu_job& j) {
  if (!j.task->extra) return true;
  for (const auto& loan : j.task->extra->loans) {
    if (!loan->begin()) {
      end_loans(j, false);
      return false;
    }
    j.loans.push_back(loan);
  }
  return true;
}

void gpu_memory::end_loans(gpu_job& j, bool well) {
  if (!well) each_replaced(j, [](peer_loan& loan) { loan.withdraw(); });
  for (const gpu_job::held& h : j.copies)  // the task has ended, and the copy before it
    for (const auto& loan : j.loans)
      if (h.copy->source == loan) h.copy->source = nullptr;
  for (const auto& loan : j.loans) loan->end();
  j.loans.clear();
}

std::shared_ptr<peer_loan> gpu_memory::loan_of(const gpu_job& j, const array_core& a, std::uint32_t tile) {
  for (const auto& loan : j.loans)
    if (loan->array == &a && loan->tile == tile) return loan;
  return nullptr;
}

bool gpu_memory::may_start(const gpu_job& j) {
  return std::none_of(j.copies.begin(), j.copies.end(), [&](const gpu_job::held& h) {
    return h.copy->source && h.copy->source != loan_of(j, *h.copy->array, h.copy->tile);
  });
}

// `what`: a box of the tile that is lent.
void gpu_memory::copy_lent(const peer_loan& loan, devices::device_pointer to, const devices::strides& to_stride,
                           const logic::box4& what) {
  const array_core& a = *loan.array;
  const logic::box4 tile = a.tile_box(loan.tile);
  const devices::strides stride = packed_strides(tile);
  const auto offset = static_cast<std::size_t>(offset_in(tile, stride, what.lo)) * a.spec.element;
  const auto lender =
      std::find_if(peers_.begin(), peers_.end(), [&](const gpu_peer& p) { return p.space == loan.from; });
  device_->copy_from(lane_in, to, to_stride, lender->facts, {loan.memory(), offset}, stride, counts_of(what),
                     a.spec.element);
  note_arrival(loan.from, bytes_in(what, a));
}

bool gpu_memory::settle_loans(gpu_job& j) {
  if (j.loans.empty()) return true;
  bool well = std::none_of(j.loans.begin(), j.loans.end(), [](const auto& loan) { return loan->is_broken(); });
  if (!j.failure.error) each_replaced(j, [&](peer_loan& loan) { well = well && loan.replace(); });
  return well;
}

void gpu_memory::spoil(gpu_job& j) {
  for (const gpu_job::held& h : j.copies) {
    replica& r = *h.copy;
    const auto loan = loan_of(j, *r.array, r.tile);
    if (loan && loan->is_broken()) r.filled = r.dirty = false;
  }
}

}  // namespace troupe::detail
