// What this file is for: arrays, accesses and futures whose rank or type is known when the program runs only.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>

#include <troupe/troupe.hpp>

#include "bodies.hpp"
#include "observation.hpp"
#include "plan.hpp"

namespace mixed {

template <int N>
using array_of = troupe::array<word, N>;
using any_array = std::variant<array_of<1>, array_of<2>, array_of<3>, array_of<4>>;
using any_future = std::variant<std::monostate, troupe::future<result>, troupe::future<void>>;

template <int N>
using rank_constant = std::integral_constant<int, N>;

/// Calls f with the rank as a constant.
template <class F>
decltype(auto) with_rank(int rank, const F& f) {
  switch (rank) {
    case 1:
      return f(rank_constant<1>());
    case 2:
      return f(rank_constant<2>());
    case 3:
      return f(rank_constant<3>());
    default:
      return f(rank_constant<4>());
  }
}

/// The handle that an access means.
template <int N>
array_of<N> part_of(const any_array& any, const access_plan& a, const array_plan& about) {
  const array_of<N>& all = std::get<array_of<N>>(any);
  return a.part == about.whole() ? all : all.sub(box_of<N>(a.part));
}

struct larger {
  word operator()(word a, word b) const { return a > b ? a : b; }
};

/// Calls f with the access to this handle.
template <int N, class F>
decltype(auto) with_action(action what, const array_of<N>& a, const F& f) {
  switch (what) {
    case action::read:
      return f(troupe::read(a));
    case action::write:
      return f(troupe::write(a));
    case action::update:
      return f(troupe::update(a));
    case action::add:
      return f(troupe::reduce(a));
    case action::exclusive_or:
      return f(troupe::reduce(a, std::bit_xor<>(), word{0}));
    default:
      return f(troupe::reduce(a, larger(), word{0}));
  }
}

/// A mapping as a mapper of the library.
template <int N>
class mapper {
 public:
  using answer = decltype(troupe::all()(troupe::box<1>(), troupe::extent<N>()));

  explicit mapper(const mapping& m) : plan_(&m) {
    for (std::size_t d = 0; d < static_cast<std::size_t>(N); ++d) window_.radius[d] = m.radius[d];
    if (m.border == edge::clamp) window_ = window_.clamp();
    if (m.border == edge::wrap) window_ = window_.wrap();
    if (m.border == edge::fill) window_ = window_.fill(m.constant);
  }

  template <int K>
  answer operator()(const troupe::box<K>& chunk, const troupe::extent<N>& e) const {
    switch (plan_->what) {
      case mapping::kind::all:
        return troupe::all()(chunk, e);
      case mapping::kind::fixed:
        return troupe::fixed<N>{box_of<N>(plan_->where)}(chunk, e);
      case mapping::kind::project:
        return {project(chunk, e)};
      default:
        if constexpr (K == N)
          return of_same_rank(chunk, e);
        else
          throw troupe::error(troupe::errc::bad_argument, "this mapping needs arrays of the rank of the index space");
    }
  }

 private:
  answer of_same_rank(const troupe::box<N>& chunk, const troupe::extent<N>& e) const {
    switch (plan_->what) {
      case mapping::kind::slice:
        return troupe::slice(plan_->dim)(chunk, e);
      case mapping::kind::window:
        return window_(chunk, e);
      case mapping::kind::mirror: {
        troupe::box<N> b = chunk;
        const auto d = static_cast<std::size_t>(plan_->dim);
        b.lo[d] = e[plan_->dim] - chunk.hi[d];
        b.hi[d] = e[plan_->dim] - chunk.lo[d];
        return {b};
      }
      default:
        return troupe::one_to_one()(chunk, e);
    }
  }
  template <int K>
  static troupe::box<N> project(const troupe::box<K>& chunk, const troupe::extent<N>& e) {
    troupe::box<N> b = troupe::whole(e);
    for (int d = 0; d < N && d < K; ++d) {
      const auto at = static_cast<std::size_t>(d);
      b.lo[at] = projected(chunk.lo[at], e[d]);
      b.hi[at] = projected(chunk.hi[at] - 1, e[d]) + 1;
    }
    return b;
  }

  const mapping* plan_;
  troupe::window_mapper<N> window_{};
};

template <int K>
troupe::index_space<K> space_of(const operation& op) {
  troupe::index_space<K> s;
  for (int d = 0; d < K; ++d) {
    s.size[d] = op.space[static_cast<std::size_t>(d)];
    s.chunk[d] = op.chunk[static_cast<std::size_t>(d)];
  }
  return s;
}

/// Where a call finds what it needs: the handles of a client.
struct handles {
  session* all = nullptr;
  std::vector<array_plan> about{};
  std::vector<any_array> arrays{};

  const array_plan& plan_of(const access_plan& a) const { return about[static_cast<std::size_t>(a.array)]; }
  template <int N>
  array_of<N> part(const access_plan& a) const {
    return part_of<N>(arrays[static_cast<std::size_t>(a.array)], a, plan_of(a));
  }
};

troupe::task_options options_of(const session&, const operation&, const std::stop_token&);

// Make a call of a plan, into the runtime or a recorder (spawn_calls.cpp, each_calls.cpp, kernel_calls.cpp).
template <class To>
any_future spawn_call(To&, const handles&, const assignment&, const troupe::task_options&,
                      const std::vector<const troupe::future<result>*>&);
template <class To>
any_future each_call(To&, const handles&, const assignment&, const troupe::task_options&);
template <class To>
any_future kernel_call(To&, const handles&, const assignment&, const troupe::task_options&);

extern template any_future spawn_call(troupe::runtime&, const handles&, const assignment&, const troupe::task_options&,
                                      const std::vector<const troupe::future<result>*>&);
extern template any_future spawn_call(troupe::recorder&, const handles&, const assignment&, const troupe::task_options&,
                                      const std::vector<const troupe::future<result>*>&);
extern template any_future each_call(troupe::runtime&, const handles&, const assignment&, const troupe::task_options&);
extern template any_future each_call(troupe::recorder&, const handles&, const assignment&, const troupe::task_options&);
extern template any_future kernel_call(troupe::runtime&, const handles&, const assignment&,
                                       const troupe::task_options&);
extern template any_future kernel_call(troupe::recorder&, const handles&, const assignment&,
                                       const troupe::task_options&);

}  // namespace mixed
