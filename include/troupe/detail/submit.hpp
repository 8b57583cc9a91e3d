// What this file is for: spawn and for_each, shared by the runtime and by the recorder of graphs.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not for users; `runtime` and `recorder` inherit these members. All may be called from any thread and from inside
// tasks. A call that is wrong throws `error` at once and leaves nothing behind.
#pragma once

#include <chrono>
#include <cmath>
#include <concepts>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/detail/call.hpp>
#include <troupe/detail/deadline.hpp>

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
  box<K> b;
  extent<K> at{};
  for (int d = 0; d < K; ++d)
    if (space.size[d] <= 0) return chunks;
  for (;;) {
    for (int d = 0; d < K; ++d) {
      b.lo[d] = at[d];
      b.hi[d] = saturated_sum(at[d], std::min(size[d], space.size[d] - at[d]));
    }
    chunks.push_back(b);
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
    const auto answer = a.map(chunk, a.target->size());
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
  check_writes(a, chunks, space);
  (check_both(a, rest, chunks, space), ...);
  check_all_writes(chunks, space, rest...);
}

inline void join_nothing() {}

}  // namespace detail

template <class Self>
class submitter {
 public:
  /// Spawns one task that calls `f` with a view per access, the value of each future, and copies of the other
  /// arguments, in their order. A `future<void>` has no value: nothing is passed for it. A body that wants only the order
  /// may take no parameters. The body runs once its accesses are ordered after earlier conflicting calls, and may run at once.
  /// Throws `error(overlapping_write)` if two accesses touch the same element and one of them changes it: pass it once, with
  /// `update` (`read` and `update` of just the same box are taken for that); `error(out_of_memory)` where there is none for
  /// the task. Returns the future of what `f` returns. Blocks at `options::tasks_in_flight_max` (never inside a task); see
  /// try_spawn.
  template <detail::body F, class... A>
  auto spawn(F&& f, const A&... args) {
    return spawn_at(to(), std::forward<F>(f), args...);
  }
  /// The same with options.
  template <detail::body F, class... A>
  auto spawn(const task_options& options, F&& f, const A&... args) {
    return spawn_at(to(), options, std::forward<F>(f), args...);
  }
  /// Spawns one call of a kernel. Access modes are checked against its signature at compile time.
  /// Throws `error(no_executor)` if no executor in scope has a body for it.
  template <class... P, class... A>
  future<void> spawn(const kernel<P...>& k, const A&... args) {
    return spawn_at(to(), k, args...);
  }
  template <class... P, class... A>
  future<void> spawn(const task_options& options, const kernel<P...>& k, const A&... args) {
    return spawn_at(to(), options, k, args...);
  }

  /// `spawn`, with any of its arguments, for callers that must not block: gives nothing where `options::tasks_in_flight_max`
  /// tasks are in flight. Inside a task and on a recorder there is always room.
  template <class... A>
  auto try_spawn(A&&... args) {
    return try_spawn_for(std::chrono::seconds(0), std::forward<A>(args)...);
  }
  template <class... A>
  auto try_spawn(const task_options& options, A&&... args) {
    return try_spawn_for(std::chrono::seconds(0), options, std::forward<A>(args)...);
  }
  /// The same, waiting for room as long as the limit says.
  template <class Rep, class Period, class... A>
  auto try_spawn_for(std::chrono::duration<Rep, Period> limit, A&&... args) {
    detail::target t = to();
    std::optional<decltype(spawn_at(t, std::forward<A>(args)...))> done;
    if (!detail::wait_for_room(t, detail::deadline_after(limit))) return done;
    t.waits = false;  // others may have taken the room meanwhile
    done.emplace(spawn_at(t, std::forward<A>(args)...));
    return done;
  }
  template <class Rep, class Period, class... A>
  auto try_spawn_for(std::chrono::duration<Rep, Period> limit, const task_options& options, A&&... args) {
    return try_spawn_for<Rep, Period, const task_options&, A...>(limit, options, std::forward<A>(args)...);
  }

  /// Spawns one task per chunk of the index space; each array argument's mapper says what a chunk touches. Accesses
  /// without a mapper are one to one where array and index space have the same extent, else the whole array. The future
  /// is done when all chunks are; the first failure is its error. Throws `error(overlapping_write)` if two chunks write
  /// the same element, or if two arguments of one chunk touch the same element and one of them changes it;
  /// `error(bad_argument)` for negative extents and sizes of chunks, and for mappers that do not fit their array;
  /// `error(out_of_memory)` for more chunks than this machine has room for.
  template <int K, detail::body F, class... A>
  future<void> for_each(const index_space<K>& space, const F& f, const A&... args) {
    return for_each_with(nullptr, nullptr, space, f, args...);
  }
  template <int K, detail::body F, class... A>
  future<void> for_each(const task_options& options, const index_space<K>& space, const F& f, const A&... args) {
    return for_each_with(&options, nullptr, space, f, args...);
  }
  template <int K, class... P, class... A>
  future<void> for_each(const index_space<K>& space, const kernel<P...>& k, const A&... args) {
    detail::check_signature(k, args...);
    return for_each_with(nullptr, intern(k), space, k.body(), args...);
  }
  template <int K, class... P, class... A>
  future<void> for_each(const task_options& options, const index_space<K>& space, const kernel<P...>& k,
                        const A&... args) {
    detail::check_signature(k, args...);
    return for_each_with(&options, intern(k), space, k.body(), args...);
  }

 protected:
  submitter() = default;

 private:
  detail::target to() const { return static_cast<const Self*>(this)->submission_target(); }

  template <class... P>
  const detail::kernel_info* intern(const kernel<P...>& k) const {
    return detail::intern(*to().house, k.info());
  }

  template <detail::body F, class... A>
  auto spawn_at(detail::target t, F&& f, const A&... args) {
    return spawn_with<F>(t, nullptr, nullptr, std::forward<F>(f), args...);
  }
  template <detail::body F, class... A>
  auto spawn_at(detail::target t, const task_options& options, F&& f, const A&... args) {
    return spawn_with<F>(t, &options, nullptr, std::forward<F>(f), args...);
  }
  template <class... P, class... A>
  future<void> spawn_at(detail::target t, const kernel<P...>& k, const A&... args) {
    detail::check_signature(k, args...);
    return spawn_with<typename kernel<P...>::cpu_body>(t, nullptr, intern(k), k.body(), args...);
  }
  template <class... P, class... A>
  future<void> spawn_at(detail::target t, const task_options& options, const kernel<P...>& k, const A&... args) {
    detail::check_signature(k, args...);
    return spawn_with<typename kernel<P...>::cpu_body>(t, &options, intern(k), k.body(), args...);
  }

  template <class F, class... A>
  auto spawn_with(detail::target t, const task_options* options, const detail::kernel_info* kernel, F&& f,
                  const A&... args) {
    using result = detail::result_of_call<std::decay_t<F>, A...>;
    detail::task_record* r =
        detail::make_record(t, options, kernel, std::forward<F>(f), static_cast<const box<1>*>(nullptr),
                            static_cast<const extent<1>*>(nullptr), args...);
    future<result> done(r);
    detail::submit(t, r);
    return done;
  }

  template <int K, class F, class... A>
  future<void> for_each_with(const task_options* options, const detail::kernel_info* kernel,
                             const index_space<K>& space, const F& f, const A&... args) {
    const detail::target t = to();
    extent<K> size = space.chunk;
    for (int d = 0; d < K; ++d) {
      if (space.size[d] < 0 || size[d] < 0) detail::throw_bad_space(options, kernel, d, space.size[d], size[d]);
    }
    if (size == extent<K>{})
      detail::choose_chunk(*t.house, K, space.size.data(), detail::output_of(args...), size.data());
    for (int d = 0; d < K; ++d)
      if (size[d] == 0) size[d] = std::max<index_t>(space.size[d], 1);
    double count = 1;
    for (int d = 0; d < K; ++d) count *= std::ceil(static_cast<double>(space.size[d]) / static_cast<double>(size[d]));
    detail::check_chunks(count, sizeof(box<K>));
    try {
      return submit_chunks(t, options, kernel, space, size, f, args...);
    } catch (const std::bad_alloc&) {
      detail::throw_no_memory();
    }
  }

  template <int K, class F, class... A>
  future<void> submit_chunks(detail::target t, const task_options* options, const detail::kernel_info* kernel,
                             const index_space<K>& space, const extent<K>& size, const F& f, const A&... args) {
    const std::vector<box<K>> chunks = detail::chunks_of(space, size);
    detail::check_all_writes(chunks, space.size, args...);

    // All records are made before the first is submitted, so that a wrong argument leaves nothing behind.
    std::vector<detail::task_record*> records;
    records.reserve(chunks.size() + 1);
    try {
      for (const auto& c : chunks)
        records.push_back(detail::make_record(t, options, kernel, f, &c, &space.size, args...));
      records.push_back(detail::make_record(t, nullptr, nullptr, &detail::join_nothing,
                                            static_cast<const box<1>*>(nullptr),
                                            static_cast<const extent<1>*>(nullptr)));
    } catch (...) {
      for (auto* r : records) {
        detail::discard(r);
        detail::release(r);
      }
      throw;
    }
    detail::task_record* join = records.back();
    records.pop_back();
    join->kind = detail::task_kind::join;
    for (auto* r : records) detail::add_join_edge(*r, *join);
    future<void> done(join);
    detail::submit_all(t, records, join);
    return done;
  }
};

}  // namespace troupe
