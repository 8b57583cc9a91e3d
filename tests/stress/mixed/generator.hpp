// What this file is for: draws the operations of one client of a mixed load.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "plan.hpp"

namespace mixed {

/// A source of chance that gives the same with every compiler.
class chance {
 public:
  explicit chance(std::uint64_t seed) : random_(seed) {}
  mixed::word word() { return random_(); }
  index from(index lo, index hi) { return lo + one_of(random_(), hi - lo + 1); }
  bool one_in(int n) { return from(1, n) == 1; }

 private:
  std::mt19937_64 random_;
};

constexpr index power(index base, int exponent) {
  index p = 1;
  for (int i = 0; i < exponent; ++i) p *= base;
  return p;
}
/// Tiles, or chunks, of so large a piece.
inline index count_of(const point& size, const point& piece) {
  index n = 1;
  for (std::size_t d = 0; d < 4; ++d) n *= (size[d] + piece[d] - 1) / piece[d];
  return n;
}

class generator {
 public:
  generator(const plan&, const std::set<std::string>& without, std::uint64_t seed, int devices);

  /// Whether tasks may be told to run on devices, which must have the memory for all that there may be.
  void allow_gpu_scope(bool on) { gpu_scope_ = on; }
  client_plan client(int operations);

  static array_plan draw_array(chance&, bool fragile, bool large, bool may_borrow);

 private:
  bool with(const char* load) const { return !without_.contains(load); }

  void step();
  void put(operation);
  operation start(operation::kind);
  void place(operation&, bool kernel);
  void burden(operation&);
  void nest(operation&, bool arrays);
  void cut(operation&, const point& size, int rank, bool must, index chunks_max);

  int any_array(int rank, bool fragile);
  int any_source(int rank, bool fragile);
  area any_part(const array_plan&);
  access_plan access_of(int array, action);
  mapping any_mapping(const access_plan& source, const access_plan& target, int source_rank, int target_rank,
                      bool wraps);
  std::vector<int> values() const;
  static bool clashes(const std::vector<access_plan>&, const access_plan&);
  static bool may_be_kept(const operation&);

  operation call();
  operation each();
  operation sweep();
  operation scatter();
  operation contents_for(int array);
  operation changing(int array, action, bool all);
  operation stir();
  operation stencil();
  operation fold();
  operation host();
  operation try_read();
  void open();
  void close();
  operation from_future(operation::kind);
  void renew();
  operation wrong();
  operation count();
  std::vector<operation> graph();

  struct held {
    int slot, array;
  };

  const plan& plan_;
  const std::set<std::string>& without_;
  chance draw_;
  int devices_;
  bool gpu_scope_ = false;
  int graphs_ = 0;
  std::vector<array_plan> arrays_{};
  std::vector<bool> in_graph_{};
  std::vector<held> open_{};
  std::set<int> dropped_{};
  std::vector<operation> operations_{};
};

}  // namespace mixed
