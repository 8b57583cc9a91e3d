// What this file is for: says which kernels other nodes may have run in this process.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/detail/call.hpp>
#include <troupe/kernel.hpp>

namespace troupe {

namespace detail {

/// One parameter of an offered kernel, for checking what a peer asks for.
struct parameter_facts {
  bool is_array = false;
  access_mode mode = access_mode::read;
  int rank = 0;           ///< of an array
  std::size_t bytes = 0;  ///< of an element, or of the value
  bool is_truth = false;  ///< a value that is 0 or 1
  /// Any number of arrays, which is told as a value (`list_length`), or of values, which are told as one.
  bool is_list = false;
};

/// A kernel that peers may name. Lives as long as the process.
struct offered_kernel {
  kernel_info info;
  std::span<const parameter_facts> parameters;
  std::shared_ptr<const void> body;
  /// Makes a record a call of it: sets its ops and its state. The values are those of the parameters that are none
  /// arrays, and the lengths of lists of arrays, in order, of the right sizes.
  void (*fill)(task_record&, const void* body, std::span<const std::span<const std::byte>> values);
};

[[gnu::visibility("default")]] void offer_kernel(offered_kernel);  // also from plugins

// The element of an array, and a value, of which a parameter has one or a list.
template <class P>
struct element_in : std::type_identity<P> {};
template <class T>
struct element_in<std::span<const T>> : std::type_identity<T> {};
template <class T, int N>
struct element_in<view<T, N>> : std::type_identity<std::remove_const_t<T>> {};
template <class T, int N>
struct element_in<std::span<const view<T, N>>> : element_in<view<T, N>> {};

template <class P>
constexpr parameter_facts facts_of() {
  using element = typename element_in<typename parameter<P>::type>::type;
  constexpr bool is_array = parameter<P>::rank != 0;
  return {.is_array = is_array,
          .mode = is_array ? static_cast<access_mode>(parameter<P>::mode) : access_mode::read,
          .rank = parameter<P>::rank,
          .bytes = sizeof(element),
          .is_truth = !is_array && std::is_same_v<element, bool>,
          .is_list = parameter<P>::is_list};
}

// The argument of a call from elsewhere: what is kept of it, and what the body is passed for it.
template <class P>
struct remote_argument {  // a value
  using stored = typename parameter<P>::type;
  static int slots(const stored&) { return 0; }
  static void keep(stored& to, std::span<const std::byte> from) {
    // A value without members may share its byte with another one of the call.
    if constexpr (!std::is_empty_v<stored>) std::memcpy(&to, from.data(), sizeof to);
  }
  static const stored& fetch(task_context&, const stored& s, int) { return s; }
};
template <class T>
struct remote_argument<std::span<const T>> {
  struct stored {
    std::vector<std::byte> bytes;
  };
  static int slots(const stored&) { return 0; }
  static void keep(stored& to, std::span<const std::byte> from) { to.bytes.assign(from.begin(), from.end()); }
  static std::span<const T> fetch(task_context&, const stored& s, int) {
    return {reinterpret_cast<const T*>(s.bytes.data()), s.bytes.size() / sizeof(T)};
  }
};
template <class P>
requires(parameter<P>::rank != 0 && !parameter<P>::is_list) struct remote_argument<P> {
  using stored = nothing;
  static int slots(stored) { return 1; }
  static typename parameter<P>::type fetch(task_context& c, stored, int slot) {
    return typename parameter<P>::type(c.view_of(slot));
  }
};
template <class P>
requires(parameter<P>::rank != 0 && parameter<P>::is_list) struct remote_argument<P> {
  using stored = kept_list;
  static int slots(stored s) { return s.count; }
  static void keep(stored& to, std::span<const std::byte> from) {
    list_length count;
    std::memcpy(&count, from.data(), sizeof count);
    to.count = static_cast<int>(count);
  }
  static auto fetch(task_context& c, stored s, int slot) {
    using each = typename parameter<P>::type::value_type;
    return views_of(std::type_identity<each>{}, c, slot, s.count);
  }
};

/// A call whose values came from elsewhere.
template <class... P>
struct remote_call {
  typename kernel<P...>::cpu_body body;
  std::tuple<typename remote_argument<P>::stored...> values;

  void operator()(task_record&, task_context& c) { run(c, std::index_sequence_for<P...>{}); }

 private:
  // How many accesses are of parameters before I.
  template <std::size_t I>
  int slot() const {
    int n = 0, at = 0;
    std::apply(
        [&](const auto&... each) { ((n += at++ < static_cast<int>(I) ? remote_argument<P>::slots(each) : 0), ...); },
        values);
    return n;
  }
  template <std::size_t... I>
  void run(task_context& c, std::index_sequence<I...>) {
    body(c, remote_argument<P>::fetch(c, std::get<I>(values), slot<I>())...);
  }
};

template <class... P>
void fill_remote_call(task_record& t, const void* body, std::span<const std::span<const std::byte>> values) {
  using call = remote_call<P...>;
  call made{*static_cast<const typename kernel<P...>::cpu_body*>(body), {}};
  std::size_t next = 0;
  const auto take = [&]<class Q>(std::type_identity<Q>, auto& to) {
    if constexpr (!std::is_same_v<std::remove_reference_t<decltype(to)>, nothing>)
      remote_argument<Q>::keep(to, values[next++]);
  };
  std::apply([&](auto&... each) { (take(std::type_identity<P>{}, each), ...); }, made.values);
  call_storage<call, void>::make(t, std::move(made));
  t.ops = &ops_of<call, void>;
}

}  // namespace detail

/// An offer lets other nodes have these kernels run in this process. No code travels between nodes: a task names its
/// kernel, and the process that receives the task runs its own body of that name and signature. Kernels that have not
/// been offered are refused.
///
///     inline constexpr auto scale = troupe::kernel<...>("scale").on(troupe::cpu, ...);
///     static const troupe::offer offered{scale, blur};
///
/// Make offers before `main` or while a plugin is loaded, as an object of static storage does; they stay for the life
/// of the process. Scalars of an offered kernel are trivially copyable, and no pointers.
class offer {
 public:
  template <class... K>
  explicit offer(const K&... kernels) {
    (add(kernels), ...);
  }

 private:
  template <class... P>
  static void add(const kernel<P...>& k) {
    static_assert(
        (detail::parameter<P>::travels && ...),
        "scalars of an offered kernel travel as bytes: they are trivially copyable, no pointers, and no spans "
        "but std::span<const T>, a list of values");
    static_assert((std::is_default_constructible_v<typename detail::remote_argument<P>::stored> && ...),
                  "scalars of an offered kernel can be made without arguments");
    static constexpr std::array<detail::parameter_facts, sizeof...(P)> parameters{detail::facts_of<P>()...};
    detail::offer_kernel({k.info(), parameters, std::make_shared<typename kernel<P...>::cpu_body>(k.body()),
                          &detail::fill_remote_call<P...>});
  }
};

}  // namespace troupe
