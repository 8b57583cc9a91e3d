// What this file is for: the boxes that a run reads and writes, from those that its calls do.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/data/recorded_effect.hpp"

#include <utility>

namespace troupe::logic {

void recorded_effect::add(box_list&& more, const box4& tile) {
  outside_.insert(outside_.end(), more.begin(), more.end());
  if (outside_.size() <= boxes_max) return;
  unite(outside_);
  if (outside_.size() > boxes_max) outside_.assign({tile});
}

recorded_effect::accesses recorded_effect::of(box_list written, const box4& tile) const {
  accesses a;
  a.mode = written.empty() ? access_mode::read : outside_.empty() ? access_mode::write : access_mode::update;
  const bool writes_all = volume(written) == tile.volume(), reads_all = volume(outside_) == tile.volume();
  if ((written.empty() || writes_all) && (outside_.empty() || reads_all)) return a;
  a.read = outside_;
  a.written = std::move(written);
  unite(a.read);
  unite(a.written);
  if (a.mode != access_mode::write && a.read.size() + a.written.size() > boxes_max)
    a = {.mode = a.mode, .read = {}, .written = {}};
  return a;
}

}  // namespace troupe::logic
