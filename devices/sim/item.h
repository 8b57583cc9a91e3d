// What this file is for: what a kernel of the software GPU sees of its work-item; also the head of kernels compiled late.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Self-contained and C++17: its text is put before kernels that are compiled while the program runs. There it is the
// main file, where compilers warn of `#pragma once`.
#ifndef TROUPE_SIM_ITEM_H
#define TROUPE_SIM_ITEM_H

/// One work-item, as the engine hands it to a kernel. Dimension 0 is the fastest.
struct troupe_sim_item {
  int local_id[3];
  int group_id[3];
  int local_size[3];
  int group_count[3];
  /// Returns once all work-items of the group have come here. Only in kernels launched with barriers.
  void (*barrier)(const troupe_sim_item*);
  /// Memory of the group, the same for all its work-items that give the same key; NaN before the first write.
  void* (*local_memory)(const troupe_sim_item*, const void* key, unsigned long bytes);
  /// The work-item was about to touch element `at` of an array of which it was given the box [lo, hi). Does not return.
  void (*outside)(const troupe_sim_item*, const char* array, int rank, const long* at, const long* lo, const long* hi);
};

#endif
