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
};

/// A kernel that peers may name. Lives as long as the process.
struct offered_kernel {
  kernel_info info;
  std::span<const parameter_facts> parameters;
  std::shared_ptr<const void> body;
  /// Makes a record a call of it: sets its ops and its state. The values are those of the parameters that are none
  /// arrays, in order, of the right sizes.
  void (*fill)(task_record&, const void* body, std::span<const std::span<const std::byte>> values);
};

[[gnu::visibility("default")]] void offer_kernel(offered_kernel);  // also from plugins

template <class P>
struct parameter_of {
  static constexpr parameter_facts facts{false, access_mode::read, 0, sizeof(P), std::is_same_v<P, bool>};
};
template <class T, int N>
struct parameter_of<in<T, N>> {
  static constexpr parameter_facts facts{true, access_mode::read, N, sizeof(T), false};
};
template <class T, int N>
struct parameter_of<out<T, N>> {
  static constexpr parameter_facts facts{true, access_mode::write, N, sizeof(T), false};
};
template <class T, int N>
struct parameter_of<inout<T, N>> {
  static constexpr parameter_facts facts{true, access_mode::update, N, sizeof(T), false};
};
template <class T, int N>
struct parameter_of<red<T, N>> {
  static constexpr parameter_facts facts{true, access_mode::reduce, N, sizeof(T), false};
};

/// A call whose values came from elsewhere.
template <class... P>
struct remote_call {
  template <class Q>
  using kept = std::conditional_t<parameter_of<Q>::facts.is_array, nothing, typename parameter<Q>::type>;

  typename kernel<P...>::cpu_body body;
  std::tuple<kept<P>...> values;

  void operator()(task_record&, task_context& c) { run(c, std::index_sequence_for<P...>{}); }

 private:
  // How many parameters before I are arrays.
  template <std::size_t I>
  static constexpr int slot() {
    constexpr bool arrays[] = {parameter_of<P>::facts.is_array..., false};
    int n = 0;
    for (std::size_t i = 0; i < I; ++i) n += arrays[i] ? 1 : 0;
    return n;
  }
  template <std::size_t I, class Q>
  typename parameter<Q>::type argument(task_context& c) {
    if constexpr (parameter_of<Q>::facts.is_array)
      return typename parameter<Q>::type(c.view_of(slot<I>()));
    else
      return std::get<I>(values);
  }
  template <std::size_t... I>
  void run(task_context& c, std::index_sequence<I...>) {
    body(c, argument<I, P>(c)...);
  }
};

template <class... P>
void fill_remote_call(task_record& t, const void* body, std::span<const std::span<const std::byte>> values) {
  using call = remote_call<P...>;
  call made{*static_cast<const typename kernel<P...>::cpu_body*>(body), {}};
  std::size_t next = 0;
  const auto take = [&](auto& to) {
    if constexpr (!std::is_same_v<std::remove_reference_t<decltype(to)>, nothing>)
      std::memcpy(&to, values[next++].data(), sizeof to);
  };
  std::apply([&](auto&... each) { (take(each), ...); }, made.values);
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
    static_assert((detail::may_travel<typename detail::parameter<P>::type> && ...),
                  "scalars of an offered kernel travel as bytes: they are trivially copyable and no pointers");
    static_assert(((detail::parameter_of<P>::facts.is_array || std::is_default_constructible_v<P>)&&...),
                  "scalars of an offered kernel can be made without arguments");
    static constexpr std::array<detail::parameter_facts, sizeof...(P)> parameters{detail::parameter_of<P>::facts...};
    detail::offer_kernel({k.info(), parameters, std::make_shared<typename kernel<P...>::cpu_body>(k.body()),
                          &detail::fill_remote_call<P...>});
  }
};

}  // namespace troupe
