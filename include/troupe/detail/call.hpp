// What this file is for: turns the arguments of `spawn` and `for_each` into task records.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not for users. Each argument is one of four: an access to an array (the body gets a view), a future (the body gets
// its value, after it), a list of one of these whose length is known at run time, or anything else (copied into the
// task). An access and a future each take one of the task's access slots, a list one for each of its elements.
#pragma once

#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/access_list.hpp>
#include <troupe/array.hpp>
#include <troupe/detail/engine.hpp>
#include <troupe/future.hpp>
#include <troupe/kernel.hpp>

namespace troupe::detail {

// ---- what an argument becomes in the body ---------------------------------------------------------------------------

template <class A>
struct argument {  // a value
  using stored = std::decay_t<A>;
  using passed = const stored&;
  static constexpr int slots = 0;
  static constexpr int mode = -1;
  template <class B>
  static stored keep(B&& a) {
    return std::forward<B>(a);
  }
  static passed fetch(task_record&, task_context&, const stored& s, int) { return s; }
};

struct nothing {};

template <class T, int N, access_mode Mode, class M>
struct argument<access_argument<T, N, Mode, M>> {
  using stored = nothing;
  using passed = view<std::conditional_t<Mode == access_mode::read, const T, T>, N>;
  static constexpr int slots = 1;
  static constexpr int mode = static_cast<int>(Mode);
  static stored keep(const access_argument<T, N, Mode, M>&) { return {}; }
  static passed fetch(task_record&, task_context& c, nothing, int slot) { return passed(c.view_of(slot)); }
};

template <class T>
struct argument<future<T>> {
  using stored = nothing;
  using passed = const T&;
  static constexpr int slots = 1;
  static constexpr int mode = -2;
  static stored keep(const future<T>&) { return {}; }
  static passed fetch(task_record& r, task_context&, nothing, int slot) {
    task_record* from = r.accesses[slot].task;
    return *static_cast<const T*>(from->ops->result(*from));
  }
};

template <>
struct argument<future<void>> {
  using stored = nothing;
  using passed = nothing;
  static constexpr int slots = 1;
  static constexpr int mode = -3;
  static stored keep(const future<void>&) { return {}; }
  static passed fetch(task_record&, task_context&, nothing, int) { return {}; }
};

// A list as it is kept in the task: how many access slots are its own.
struct kept_list {
  int count = 0;
};

// Views of accesses in a row, those of a list.
template <class T, int N>
views<T, N> views_of(std::type_identity<view<T, N>>, task_context& c, int slot, int count) {
  short_list<view<T, N>> list(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) list.set(static_cast<std::size_t>(i), view<T, N>(c.view_of(slot + i)));
  return views<T, N>(std::move(list));
}

template <class T, int N, access_mode Mode, class M>
struct argument<access_list<T, N, Mode, M>> {
  using stored = kept_list;
  using element = std::conditional_t<Mode == access_mode::read, const T, T>;
  using passed = views<element, N>;
  static constexpr bool is_list = true;
  static constexpr int slots = 0;
  static constexpr int mode = -4;
  static constexpr int mode_of_each = static_cast<int>(Mode);
  static constexpr bool writes = Mode != access_mode::read;
  static stored keep(const access_list<T, N, Mode, M>& a) { return {static_cast<int>(a.targets.size())}; }
  static passed fetch(task_record&, task_context& c, stored s, int slot) {
    return views_of(std::type_identity<view<element, N>>{}, c, slot, s.count);
  }
};

template <class T>
struct argument<std::span<const future<T>>> {
  using stored = kept_list;
  using passed = values<T>;
  static constexpr bool is_list = true;
  static constexpr int slots = 0;
  static constexpr int mode = -4;
  static stored keep(std::span<const future<T>> a) { return {static_cast<int>(a.size())}; }
  static passed fetch(task_record& r, task_context&, stored s, int slot) {
    short_list<const T*> list(static_cast<std::size_t>(s.count));
    for (int i = 0; i < s.count; ++i) {
      task_record* from = r.accesses[slot + i].task;
      list.set(static_cast<std::size_t>(i), static_cast<const T*>(from->ops->result(*from)));
    }
    return passed(std::move(list));
  }
};
template <>
struct argument<std::span<const future<void>>> {
  using stored = kept_list;
  using passed = nothing;
  static constexpr bool is_list = true;
  static constexpr int slots = 0;
  static constexpr int mode = -4;
  static stored keep(std::span<const future<void>> a) { return {static_cast<int>(a.size())}; }
  static passed fetch(task_record&, task_context&, stored, int) { return {}; }
};
template <class T>
struct argument<std::vector<future<T>>> : argument<std::span<const future<T>>> {};
template <class T>
struct argument<std::span<future<T>>> : argument<std::span<const future<T>>> {};

// Values that stand one after the other, as the body of a kernel gets a list of them.
template <class T>
class value_list {
 public:
  explicit value_list(std::size_t count) : list_(count) {}
  explicit value_list(std::span<const T> all) : list_(all.size()) {
    if (!all.empty()) std::memcpy(list_.bytes(), all.data(), all.size_bytes());
  }
  void set(std::size_t i, const T& v) { list_.set(i, v); }
  operator std::span<const T>() const { return {list_.data(), list_.size()}; }

 private:
  short_list<T> list_;
};

// Futures whose values a kernel takes as such a list.
template <class T>
struct listed_futures {
  std::span<const future<T>> all;
};
template <class T>
struct argument<listed_futures<T>> {
  using stored = kept_list;
  using passed = value_list<T>;
  static constexpr bool is_list = true;
  static constexpr int slots = 0;
  static constexpr int mode = -4;
  static stored keep(listed_futures<T> a) { return {static_cast<int>(a.all.size())}; }
  static passed fetch(task_record& r, task_context& c, stored s, int slot) {
    const values<T> from = argument<std::span<const future<T>>>::fetch(r, c, s, slot);
    passed list(from.size());
    for (std::size_t i = 0; i < from.size(); ++i) list.set(i, from[i]);
    return list;
  }
};

template <class A>
struct argument_type : std::remove_cvref<A> {};
template <class T, std::size_t N>
struct argument_type<T (&)[N]> : std::type_identity<const T*> {};  // text between quotes, which stays where it is
template <class T, std::size_t N>
struct argument_type<T[N]> : std::type_identity<const T*> {};
template <class A>
using argument_of = argument<typename argument_type<A>::type>;

template <class A>
inline constexpr bool is_list = requires {
  argument_of<A>::is_list;
};

template <class A>
inline constexpr bool is_access = argument_of<A>::mode >= 0;

// Number of access slots before argument I, those of lists left out.
template <std::size_t I, class... A>
constexpr int slot_of() {
  constexpr int slots[] = {argument_of<A>::slots..., 0};
  int n = 0;
  for (std::size_t i = 0; i < I; ++i) n += slots[i];
  return n;
}

// The same with those of lists.
template <std::size_t I, class... A>
int slot_of(const std::tuple<typename argument_of<A>::stored...>& values) {
  int n = slot_of<I, A...>();
  if constexpr ((is_list<A> || ...)) [&]<std::size_t... K>(std::index_sequence<K...>) {
      [[maybe_unused]] const auto add = [&](const auto& kept) {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(kept)>, kept_list>) n += kept.count;
      };
      (add(std::get<K>(values)), ...);
    }
  (std::make_index_sequence<I>());
  return n;
}

// ---- calling a body -------------------------------------------------------------------------------------------------

template <class F, class... P>
decltype(auto) call_body(F& f, task_context& c, P&&... p) {
  if constexpr (std::is_invocable_v<F&, P...>)
    return f(std::forward<P>(p)...);
  else {
    static_assert(std::is_invocable_v<F&, task_context&, P...>,
                  "the body cannot be called with these arguments: it gets one view per access, the value of each "
                  "future that has one and a copy of everything else, optionally with task_context& first");
    return f(c, std::forward<P>(p)...);
  }
}

// A body that wants none of its views and futures (only their order) may take no parameters at all.
template <class F, class... A>
inline constexpr bool takes_nothing = sizeof...(A) > 0 &&
                                      ((argument_of<A>::slots == 1 || is_list<A>)&&...) && std::is_invocable_v<F&> &&
                                      !std::is_invocable_v<F&, typename argument_of<A>::passed...>;

// The arguments that a body gets: everything, or all except those of futures without a value.
template <class P>
using if_something = std::conditional_t<std::is_same_v<P, nothing>, std::tuple<>, std::tuple<P>>;
template <class P>
if_something<P> if_any(P p) {
  if constexpr (std::is_same_v<P, nothing>)
    return {};
  else
    return if_something<P>(std::forward<P>(p));
}

template <class F, class... A>
inline constexpr bool takes_no_nothing = (std::is_same_v<typename argument_of<A>::passed, nothing> || ...) &&
                                         !std::is_invocable_v<F&, typename argument_of<A>::passed...> &&
                                         !std::is_invocable_v<F&, task_context&, typename argument_of<A>::passed...>;

// ---- numbers that kernels are passed --------------------------------------------------------------------------------

/// The name of a number's type, as messages show it.
template <class T>
constexpr const char* name_of_number() {
  if constexpr (std::is_same_v<T, bool>)
    return "bool";
  else if constexpr (std::is_floating_point_v<T>)
    return sizeof(T) == 4 ? "float" : sizeof(T) == 8 ? "double" : "a floating-point number";
  else if constexpr (std::is_signed_v<T>)
    return sizeof(T) == 1 ? "int8" : sizeof(T) == 2 ? "int16" : sizeof(T) == 4 ? "int32" : "int64";
  else
    return sizeof(T) == 1 ? "uint8" : sizeof(T) == 2 ? "uint16" : sizeof(T) == 4 ? "uint32" : "uint64";
}

/// Whether a parameter of type P holds this number: integers as they are, floating-point numbers rounded.
template <class P, class T>
constexpr bool holds_number(T v) {
  [[maybe_unused]] const auto is_negative = [](auto x) {
    if constexpr (std::is_signed_v<decltype(x)>)
      return x < 0;
    else
      return false;
  };
  if constexpr (std::is_integral_v<P> && std::is_integral_v<T>) {
    const P p = static_cast<P>(v);
    return static_cast<T>(p) == v && is_negative(p) == is_negative(v);
  } else if constexpr (std::is_integral_v<P>) {
    T end = 1;  // 2^digits: the largest is one less, which T may not hold
    for (int i = 0; i < std::numeric_limits<P>::digits; ++i) end *= 2;
    if (!(v >= (std::is_signed_v<P> ? -end : T{0}) && v < end)) return false;  // nor is it a NaN
    return static_cast<T>(static_cast<P>(v)) == v;
  } else if constexpr (std::numeric_limits<P>::max_exponent < std::numeric_limits<T>::max_exponent) {
    constexpr T most = std::numeric_limits<P>::max(), infinite = std::numeric_limits<T>::infinity();
    return !(v > most || v < -most) || v == infinite || v == -infinite;
  } else {
    return true;
  }
}

/// A value that is passed to a kernel as a P.
template <class P, class T>
void check_number(const char* kernel, argument_place at, const T& value) {
  if constexpr (std::is_enum_v<T> && std::is_convertible_v<T, P>) {
    check_number<P>(kernel, at, static_cast<std::underlying_type_t<T>>(value));
  } else if constexpr (std::is_arithmetic_v<P> && std::is_arithmetic_v<T> && !std::is_same_v<P, T>) {
    if (holds_number<P>(value)) return;
    using told = std::conditional_t<std::is_floating_point_v<T>, double,
                                    std::conditional_t<std::is_signed_v<T>, long long, unsigned long long>>;
    throw_lost(kernel, at, static_cast<told>(value), name_of_number<P>());
  }
}

/// The same for what a future has, which is known when the body runs.
template <class F, std::size_t I, class A>
void check_late(task_record& r, task_context& c, int slot, std::size_t count) {
  if constexpr (argument_of<A>::mode == -2)
    check_number<std::remove_cvref_t<std::tuple_element_t<I, typename F::kernel_parameters>>>(
        r.kernel->name, {I + 1, count}, argument_of<A>::fetch(r, c, {}, slot));
}

template <class F, class... A>
struct call_state {
  F body;
  [[no_unique_address]] std::tuple<typename argument_of<A>::stored...> values;

  template <std::size_t... I>
  decltype(auto) run(task_record& r, task_context& c, std::index_sequence<I...>) {
    if constexpr (requires { typename F::kernel_parameters; })
      (check_late<F, I, A>(r, c, slot_of<I, A...>(values), sizeof...(A)), ...);
    if constexpr (takes_nothing<F, A...>)
      return body();
    else if constexpr (takes_no_nothing<F, A...>)
      return std::apply(
          [&](auto&&... p) -> decltype(auto) { return call_body(body, c, std::forward<decltype(p)>(p)...); },
          std::tuple_cat(if_any<typename argument_of<A>::passed>(
              argument_of<A>::fetch(r, c, std::get<I>(values), slot_of<I, A...>(values)))...));
    else
      return call_body(body, c, argument_of<A>::fetch(r, c, std::get<I>(values), slot_of<I, A...>(values))...);
  }
  decltype(auto) operator()(task_record& r, task_context& c) { return run(r, c, std::index_sequence_for<A...>{}); }
};

template <class F, class... A>
using result_of_call = std::remove_cvref_t<decltype(std::declval<call_state<F, A...>&>()(
    std::declval<task_record&>(), std::declval<task_context&>()))>;

// Destroys an object; an exception of its destructor is the caller's to handle.
template <class T>
void end_life(T& x) noexcept(std::is_nothrow_destructible_v<T>) {
  if constexpr (!std::is_trivially_destructible_v<T>) {
    const no_waiting here;
    x.~T();
  }
}
// Destroys a result, which goes with its last future: what the destructor throws cannot be reported to anyone.
template <class R>
void destroy(R& value) noexcept {
  if constexpr (std::is_nothrow_destructible_v<R>) {
    end_life(value);
  } else {
    try {
      end_life(value);
    } catch (...) {
    }
  }
}

// The state of a call and its result, in the record where they fit, else on the heap.
template <class State, class R>
struct call_storage {
  struct filled {
    alignas(State) std::byte state[sizeof(State)];
    alignas(R) std::byte value[sizeof(R)];
    bool has_value = false;
  };
  static constexpr bool inside = sizeof(filled) <= task_record::storage_size && alignof(filled) <= 8;

  static filled& of(task_record& r) {
    if constexpr (inside)
      return *std::launder(reinterpret_cast<filled*>(r.storage));
    else
      return **std::launder(reinterpret_cast<filled**>(r.storage));
  }
  static void make(task_record& r, State&& s) {
    filled* f;
    if constexpr (inside) {
      f = new (r.storage) filled;
    } else {
      f = new filled;
      new (r.storage) filled*(f);
    }
    new (f->state) State(std::move(s));
  }
  static void run(task_record& r, task_context& c) {
    filled& f = of(r);
    R* result = reinterpret_cast<R*>(f.value);
    if (f.has_value) {  // a recorded task that runs again
      f.has_value = false;
      std::launder(result)->~R();
    }
    new (result) R((*std::launder(reinterpret_cast<State*>(f.state)))(r, c));
    f.has_value = true;
  }
  static void drop_body(task_record& r) { end_life(*std::launder(reinterpret_cast<State*>(of(r).state))); }
  static void drop_result(task_record& r) noexcept {
    filled& f = of(r);
    if (f.has_value) destroy(*std::launder(reinterpret_cast<R*>(f.value)));
    if constexpr (!inside) delete &f;
  }
  static void* result(task_record& r) noexcept { return of(r).value; }
};

template <class State>
struct call_storage<State, void> {
  static constexpr bool inside = sizeof(State) <= task_record::storage_size && alignof(State) <= 8;

  static State& of(task_record& r) {
    if constexpr (inside)
      return *std::launder(reinterpret_cast<State*>(r.storage));
    else
      return **std::launder(reinterpret_cast<State**>(r.storage));
  }
  static void make(task_record& r, State&& s) {
    if constexpr (inside)
      new (r.storage) State(std::move(s));
    else
      new (r.storage) State*(new State(std::move(s)));
  }
  static void run(task_record& r, task_context& c) { of(r)(r, c); }
  static void drop_body(task_record& r) {
    if constexpr (inside) {
      end_life(of(r));
    } else {
      const no_waiting here;
      delete &of(r);
    }
  }
  static void drop_result(task_record&) noexcept {}
  static void* result(task_record&) noexcept { return nullptr; }
};

template <class State, class R>
inline constexpr task_ops ops_of{
    &call_storage<State, R>::run,    &call_storage<State, R>::drop_body, &call_storage<State, R>::drop_result,
    &call_storage<State, R>::result, kernel_info{.name = "task"},
};

// ---- filling accesses -----------------------------------------------------------------------------------------------

// Returns the mapper's answer for a chunk; its errors are reported with the array's name.
template <class T, int N, access_mode Mode, class M, int K>
auto answer_of(const access_argument<T, N, Mode, M>& a, const box<K>& chunk) {
  try {
    return a.map(chunk, a.target->size());
  } catch (const error& e) {
    throw_of_array(e, *a.target->core());
  }
}

template <class T, int N, access_mode Mode, class M, int K>
void fill_access(engine& the_engine, const runtime_state* rt, access& to, const access_argument<T, N, Mode, M>& a,
                 const box<K>* chunk, const extent<K>* space) {
  if (!*a.target) throw error(errc::bad_argument, "an argument of the call is an empty array handle");
  if constexpr (Mode != access_mode::reduce && Mode != access_mode::append && std::is_same_v<M, unmapped>) {
    if (!chunk && a.target->runtime_of_tile()) {
      if (a.target->runtime_of_tile() != rt) throw_foreign(*a.target->core());
      to.array = a.target->core();
      to.where = nullptr;
      to.tile = 0;
      to.mode = Mode;
      to.link = link_mode::none;
      to.worker = 0;
      return;
    }
  }
  [[maybe_unused]] bool same_extent = false;
  if constexpr (K == N) same_extent = space && *space == a.target->size();
  if constexpr (Mode == access_mode::append)
    throw error(errc::not_supported, "append is declared, but no executor of this build offers it");
  const box<N>& limit = a.target->limit();
  mapped<N> m;
  if constexpr (std::is_same_v<M, all>) {
    m.where = whole(a.target->size());
  } else if constexpr (std::is_same_v<M, unmapped>) {
    m.where = whole(a.target->size());
    if constexpr (K == N)
      if (chunk && same_extent) m.where = *chunk;
  } else {
    if (!chunk) throw error(errc::bad_argument, "a mapper needs an index space: use for_each, or a sub-array");
    static_assert(mapper<M, K, N>, "the mapper cannot be called with this index space and array");
    const auto answer = answer_of(a, *chunk);
    if constexpr (std::is_convertible_v<decltype(answer), mapped<N>>)
      m = answer;
    else
      m.where = answer;
    if (m.edge == border::fill && (!m.fill_type || std::strcmp(m.fill_type, text_of_type<T>()) != 0))
      throw error(errc::bad_argument,
                  "the fill value of a window has another type than array '" + a.target->name() + "'");
  }
  std::array<index_t, rank_max> lo{}, hi{1, 1, 1, 1}, limit_lo{}, limit_hi{1, 1, 1, 1};
  for (int d = 0; d < N; ++d) {
    lo[d] = saturated_sum(m.where.lo[d], limit.lo[d]);
    hi[d] = saturated_sum(m.where.hi[d], limit.lo[d]);
    limit_lo[d] = limit.lo[d];
    limit_hi[d] = limit.hi[d];
  }
  const void* constant = a.combiner ? static_cast<const void*>(a.identity.data()) : m.fill;
  const std::size_t constant_size = a.combiner ? sizeof(T) : m.fill_size;
  describe(the_engine, to, *a.target->core(), Mode, lo, hi, limit_lo, limit_hi, m.edge, constant, constant_size,
           a.combiner);
}

template <class T, int K>
void fill_access(engine&, const runtime_state*, access& to, const future<T>& f, const box<K>*, const extent<K>*) {
  if (!f.valid()) throw error(errc::bad_argument, "an argument of the call is an empty future");
  retain(f.task());
  to.array = nullptr;
  to.task = f.task();
  to.link = link_mode::data;
}

// Calls f for each element of a list, for any other argument with that itself.
template <class A, class F>
void each_element(const A& a, F&& f) {
  f(a);
}
template <class T, int N, access_mode Mode, class M, class F>
void each_element(const access_list<T, N, Mode, M>& a, F&& f) {
  for (std::size_t i = 0; i < a.targets.size(); ++i) f(a.at(i));
}
template <class T, class F>
void each_element(std::span<const future<T>> a, F&& f) {
  for (const future<T>& x : a) f(x);
}
template <class T, class F>
void each_element(std::span<future<T>> a, F&& f) {
  for (const future<T>& x : a) f(x);
}
template <class T, class F>
void each_element(const std::vector<future<T>>& a, F&& f) {
  for (const future<T>& x : a) f(x);
}
template <class T, class F>
void each_element(listed_futures<T> a, F&& f) {
  for (const future<T>& x : a.all) f(x);
}

template <class A>
std::size_t slots_taken([[maybe_unused]] const A& a) {
  if constexpr (is_list<A>)
    return static_cast<std::size_t>(argument_of<A>::keep(a).count);
  else
    return static_cast<std::size_t>(argument_of<A>::slots);
}

template <class A, int K>
void fill_one(engine& the_engine, task_record& r, int& slot, const A& a, const box<K>* chunk, const extent<K>* space) {
  if constexpr (argument_of<A>::slots == 1) {
    fill_access(the_engine, r.rt, r.accesses[slot], a, chunk, space);
    ++slot;
    r.access_count = static_cast<std::uint16_t>(slot);
  } else if constexpr (is_list<A>) {
    each_element(a, [&](const auto& x) {
      fill_access(the_engine, r.rt, r.accesses[slot], x, chunk, space);
      ++slot;
      r.access_count = static_cast<std::uint16_t>(slot);
    });
  }
}

// Two accesses of one call to one array, of which one changes what the other sees. Partials of reductions are private,
// and any number of them may be combined.
template <class A, class B>
struct may_clash : std::false_type {};
template <class T, int N, access_mode X, class M, access_mode Y, class O>
struct may_clash<access_argument<T, N, X, M>, access_argument<T, N, Y, O>>
    : std::bool_constant<(X != access_mode::read || Y != access_mode::read) &&
                         !(X == access_mode::reduce && Y == access_mode::reduce)> {};

template <std::size_t I, std::size_t J, class... A>
void check_pair([[maybe_unused]] const task_record& r, [[maybe_unused]] const std::tuple<const A&...>& args) {
  if constexpr (I < J) {
    if constexpr (may_clash<std::tuple_element_t<I, std::tuple<A...>>,
                            std::tuple_element_t<J, std::tuple<A...>>>::value) {
      const access &x = r.accesses[slot_of<I, A...>()], &y = r.accesses[slot_of<J, A...>()];
      if (x.array != y.array || (!x.where && !y.where && x.tile != y.tile)) return;
      check_clash(r, x, y);
    }
  }
}

template <class... A>
void check_pairs(const task_record& r, const A&... args) {
  constexpr std::size_t n = sizeof...(A);
  if constexpr ((is_list<A> || ...))
    check_clashes(r);
  else if constexpr (n > 1)
    [&]<std::size_t... K>(std::index_sequence<K...>, const std::tuple<const A&...>& all) {
      (check_pair<K / n, K % n, A...>(r, all), ...);
    }
  (std::make_index_sequence<n * n>(), std::tuple<const A&...>(args...));
}

template <class A>
inline constexpr bool is_array_list = requires {
  argument_of<A>::mode_of_each;
};

// Checks what a kernel requires of the shapes of its arrays, where some of these are in lists.
template <class... A>
void check_list_shapes(const task_record& r, const A&... args) {
  if (r.kernel->shape_count == 0) return;
  std::array<list_length, (std::size_t{0} + ... + (is_array_list<A> ? 1 : 0))> lengths;
  std::size_t n = 0;
  [[maybe_unused]] const auto note = [&](const auto& a) {
    if constexpr (is_array_list<std::remove_cvref_t<decltype(a)>>)
      lengths[n++] = static_cast<list_length>(a.targets.size());
  };
  (note(args), ...);
  check_shapes(r, lengths);
}

/// One record for one call. `chunk` is null for spawn.
template <class F, int K, class... A>
task_record* make_record(target to, const task_options* options, const kernel_info* kernel, F&& f,
                         [[maybe_unused]] const box<K>* chunk, [[maybe_unused]] const extent<K>* space,
                         const A&... args) {
  using state = call_state<std::decay_t<F>, A...>;
  using result = result_of_call<std::decay_t<F>, A...>;
  using storage = call_storage<state, result>;
  task_record* r = new_task(*to.the_engine);
  r->ops = nullptr;
  try {
    if constexpr ((is_list<A> || ...)) {
      if (const std::size_t slots = (slots_taken(args) + ...); slots > task_record::inline_accesses)
        size_accesses(*r, slots);
    } else {
      constexpr int slots = (0 + ... + argument_of<A>::slots);
      if constexpr (slots > task_record::inline_accesses) size_accesses(*r, slots);
    }
    try {
      [[maybe_unused]] int slot = 0;
      (fill_one(*to.the_engine, *r, slot, args, chunk, space), ...);
    } catch (const error& e) {
      throw_of_call(e, options, kernel);
    }
    r->kernel = kernel ? kernel : &ops_of<state, result>.closure;
    check_pairs(*r, args...);
    if (options)
      apply(*to.the_engine, *r, *options);
    else if (r->kernel->resource_count != 0)
      apply(*to.the_engine, *r, task_options{});
    if (kernel) {
      if constexpr ((is_array_list<A> || ...)) check_list_shapes<A...>(*r, args...);
      check_kernel(*to.the_engine, *r);
    }
    storage::make(*r, state{std::forward<F>(f), {argument_of<A>::keep(args)...}});
    r->ops = &ops_of<state, result>;
  } catch (const std::bad_alloc&) {
    discard(r);
    release(r);
    throw_no_memory();
  } catch (...) {
    discard(r);
    release(r);
    throw;
  }
  return r;
}

// ---- kernels --------------------------------------------------------------------------------------------------------

// Whether a call may pass an A for the parameter P.
template <class P, class A>
constexpr bool takes_list() {
  if constexpr (!parameter<P>::is_list)
    return !is_list<A>;
  else if constexpr (parameter<P>::rank != 0)
    return is_array_list<A>;
  else
    return !is_array_list<A> && !is_access<A>;
}
template <class P, class A>
constexpr bool takes_mode() {
  if constexpr (is_array_list<A>)
    return parameter<P>::mode == argument_of<A>::mode_of_each;
  else
    return parameter<P>::mode == (argument_of<A>::mode < 0 ? -1 : argument_of<A>::mode);
}

template <class... P, class... A>
constexpr void check_signature(const kernel<P...>& k, const A&... args) {
  static_assert(sizeof...(P) == sizeof...(A), "the call has another number of arguments than the kernel's signature");
  if constexpr (sizeof...(P) == sizeof...(A)) {
    static_assert((takes_list<P, A>() && ...),
                  "lists differ from the kernel's signature: in_all<> takes read_all(), out_all<> write_all(), "
                  "inout_all<> update_all(), std::span<const T> futures of T or values");
    static_assert((takes_mode<P, A>() && ...),
                  "access modes differ from the kernel's signature: in<> takes read(), out<> write(), inout<> "
                  "update(), red<> reduce()");
    [[maybe_unused]] std::size_t i = 0;
    (check_number<std::remove_cvref_t<typename parameter<P>::type>>(k.name(), {++i, sizeof...(A)}, args), ...);
  }
}

// An argument as the call of a kernel keeps it for the parameter P: lists of values as such, all others as they are.
template <class P>
struct for_parameter {
  template <class A>
  static const A& of(const A& a) {
    return a;
  }
};
template <listed_value T>
struct for_parameter<std::span<const T>> {
  template <class A>
  static constexpr bool is_text = std::is_array_v<A>&& std::is_same_v<std::remove_cv_t<std::remove_extent_t<A>>, char>;
  template <class A>
  static decltype(auto) of(const A& a) {
    if constexpr (std::is_convertible_v<const A&, std::span<const future<T>>>)
      return listed_futures<T>{a};
    else if constexpr (std::is_convertible_v<const A&, std::span<const T>> && !is_text<A>)
      return value_list<T>(std::span<const T>(a));
    else
      return static_cast<const A&>(a);  // the future of a list, or an error
  }
};

}  // namespace troupe::detail
