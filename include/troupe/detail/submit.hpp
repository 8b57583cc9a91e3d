// What this file is for: how spawn and for_each (submitter.hpp) make records of calls and hand them over.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not for users. A call that is wrong throws `error` at once and leaves nothing behind.
#pragma once

#include <cmath>
#include <concepts>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/detail/call.hpp>

namespace troupe {

namespace detail {

template <class T>
inline constexpr bool is_kernel = false;
template <class... P>
inline constexpr bool is_kernel<kernel<P...>> = true;

template <class T>
inline constexpr bool is_index_space = false;
template <int N>
inline constexpr bool is_index_space<index_space<N>> = true;

template <class F>
concept body = !is_kernel<std::remove_cvref_t<F>> && !is_index_space<std::remove_cvref_t<F>> &&
               !std::same_as<std::remove_cvref_t<F>, task_options>;

/// The chunk boxes of an index space, in row-major order.
template <int K>
std::vector<box<K>> chunks_of(const index_space<K>& space, const extent<K>& size) {
  std::vector<box<K>> chunks;
  extent<K> at{};
  for (int d = 0; d < K; ++d)
    if (space.size[d] <= 0) return chunks;
  for (;;) {
    box<K>& b = chunks.emplace_back();
    for (int d = 0; d < K; ++d) {
      b.lo[d] = at[d];
      b.hi[d] = saturated_sum(at[d], std::min(size[d], space.size[d] - at[d]));
    }
    int d = K - 1;
    while (d >= 0 && (at[d] = b.hi[d]) == space.size[d]) at[d--] = 0;
    if (d < 0) return chunks;
  }
}

// The first array that the call writes: its tiles suggest the chunks.
inline const array_core* output_of() { return nullptr; }
template <class A, class... Rest>
const array_core* output_of(const A& a, const Rest&... rest) {
  if constexpr (argument_of<A>::mode == static_cast<int>(access_mode::write) ||
                argument_of<A>::mode == static_cast<int>(access_mode::update))
    return a.target->core();
  else if constexpr (requires { requires argument_of<A>::writes; })
    return a.targets.empty() ? output_of(rest...) : a.targets.front().core();
  else
    return output_of(rest...);
}

// Where one argument may make chunks write over each other. One-to-one chunks cannot.
template <class A>
struct writes_freely : std::false_type {};
template <class T, int N, class M>
struct writes_freely<access_argument<T, N, access_mode::write, M>>
    : std::bool_constant<!std::is_same_v<M, one_to_one>> {};

// The box that an argument means for a chunk, in coordinates of its (sub-)array.
template <class T, int N, access_mode Mode, class M, int K>
box<N> box_of(const access_argument<T, N, Mode, M>& a, const box<K>& chunk, const extent<K>& space) {
  if constexpr (std::is_same_v<M, unmapped>) {
    if constexpr (K == N)
      if (space == a.target->size()) return chunk;
    return whole(a.target->size());
  } else {
    const auto answer = answer_of(a, chunk);
    if constexpr (std::is_convertible_v<decltype(answer), mapped<N>>) {
      const mapped<N> m = answer;
      return m.where;
    } else {
      return answer;
    }
  }
}

// Appends the boxes of all chunks, moved by `origin`.
template <class A, int K, class Box>
void add_boxes(const A& a, const std::vector<box<K>>& chunks, const extent<K>& space, const Box& origin,
               std::vector<std::array<index_t, 2 * rank_max>>& to) {
  constexpr int N = std::remove_cvref_t<decltype(*a.target)>::rank;
  for (const auto& c : chunks) {
    const box<N> where = box_of(a, c, space);
    std::array<index_t, 2 * rank_max> b{};
    for (int d = 0; d < N; ++d) {
      b[d] = saturated_sum(where.lo[d], origin.lo[d]);
      b[rank_max + d] = saturated_sum(where.hi[d], origin.lo[d]);
    }
    to.push_back(b);
  }
}

template <class A, int K>
void check_writes(const A& a, const std::vector<box<K>>& chunks, const extent<K>& space) {
  if constexpr (writes_freely<A>::value) {
    constexpr int N = std::remove_cvref_t<decltype(*a.target)>::rank;
    if (!*a.target || chunks.size() < 2) return;
    if constexpr (K == N && std::is_same_v<std::remove_cvref_t<decltype(a.map)>, unmapped>)
      if (space == a.target->size()) return;  // one to one
    std::vector<std::array<index_t, 2 * rank_max>> boxes;
    boxes.reserve(chunks.size());
    add_boxes(a, chunks, space, box<N>{}, boxes);
    check_disjoint(*a.target->core(), N, boxes);
  }
}

// The same for two arguments that both write to one array: a chunk of the one and a chunk of the other.
template <class A, class B, int K>
void check_both(const A& a, const B& b, const std::vector<box<K>>& chunks, const extent<K>& space) {
  if constexpr (may_clash<A, B>::value && argument_of<A>::mode == static_cast<int>(access_mode::write) &&
                argument_of<B>::mode == static_cast<int>(access_mode::write)) {
    if (!*a.target || a.target->core() != b.target->core() || chunks.size() < 2) return;
    std::vector<std::array<index_t, 2 * rank_max>> boxes;
    boxes.reserve(2 * chunks.size());
    add_boxes(a, chunks, space, a.target->limit(), boxes);
    add_boxes(b, chunks, space, b.target->limit(), boxes);
    check_disjoint(*a.target->core(), std::remove_cvref_t<decltype(*a.target)>::rank, boxes);
  }
}
template <int K>
void check_all_writes(const std::vector<box<K>>&, const extent<K>&) {}
template <int K, class A, class... Rest>
void check_all_writes(const std::vector<box<K>>& chunks, const extent<K>& space, const A& a, const Rest&... rest) {
  each_element(a, [&](const auto& x) {
    check_writes(x, chunks, space);
    (each_element(rest, [&](const auto& y) { check_both(x, y, chunks, space); }), ...);
  });
  if constexpr (requires { requires argument_of<A>::writes; })
    for (std::size_t i = 1; i < a.targets.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) check_both(a.at(j), a.at(i), chunks, space);
  check_all_writes(chunks, space, rest...);
}

inline void join_nothing() {}

// One task. `kernel` is null for a closure.
template <class F, class... A>
auto spawn_with(target t, const task_options* options, const kernel_info* kernel, F&& f, const A&... args) {
  using result = result_of_call<std::decay_t<F>, A...>;
  task_record* r = detail::make_record(t, options, kernel, std::forward<F>(f), static_cast<const box<1>*>(nullptr),
                                       static_cast<const extent<1>*>(nullptr), args...);
  future<result> done(r);
  submit(t, r);
  return done;
}

template <int K, class F, class... A>
future<void> submit_chunks(target t, const task_options* options, const kernel_info* kernel,
                           const index_space<K>& space, const extent<K>& size, const F& f, const A&... args) {
  const std::vector<box<K>> chunks = chunks_of(space, size);
  try {
    detail::check_all_writes(chunks, space.size, args...);
  } catch (const error& e) {
    throw_of_call(e, options, kernel);
  }

  // All records are made before the first is submitted, so that a wrong argument leaves nothing behind.
  std::vector<task_record*> records;
  records.reserve(chunks.size() + 1);
  try {
    for (const auto& c : chunks)
      records.push_back(detail::make_record(t, options, kernel, f, &c, &space.size, args...));
    records.push_back(make_record(t, nullptr, nullptr, &join_nothing, static_cast<const box<1>*>(nullptr),
                                  static_cast<const extent<1>*>(nullptr)));
  } catch (...) {
    for (auto* r : records) {
      discard(r);
      release(r);
    }
    throw;
  }
  task_record* join = records.back();
  records.pop_back();
  join->kind = task_kind::join;
  for (auto* r : records) add_join_edge(*r, *join);
  future<void> done(join);
  submit_all(t, records, join);
  return done;
}

// All chunks and their join, or none. `kernel` is null for a closure.
template <int K, class F, class... A>
future<void> for_each_with(target t, const task_options* options, const kernel_info* kernel,
                           const index_space<K>& space, const F& f, const A&... args) {
  extent<K> size = space.chunk;
  for (int d = 0; d < K; ++d) {
    if (space.size[d] < 0 || size[d] < 0) detail::throw_bad_space(options, kernel, d, space.size[d], size[d]);
  }
  if (size == extent<K>{}) choose_chunk(*t.the_engine, K, space.size.data(), detail::output_of(args...), size.data());
  for (int d = 0; d < K; ++d)
    if (size[d] == 0) size[d] = std::max<index_t>(space.size[d], 1);
  double count = 1;
  for (int d = 0; d < K; ++d) count *= std::ceil(static_cast<double>(space.size[d]) / static_cast<double>(size[d]));
  check_chunks(count, sizeof(box<K>));
  try {
    return detail::submit_chunks(t, options, kernel, space, size, f, args...);
  } catch (const std::bad_alloc&) {
    throw_no_memory();
  }
}

}  // namespace detail

}  // namespace troupe
