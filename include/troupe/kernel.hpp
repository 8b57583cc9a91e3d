// What this file is for: kernels: a named computation with one typed signature and a body per kind of device.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>

#include <troupe/access.hpp>
#include <troupe/detail/parameter.hpp>
#include <troupe/detail/task.hpp>
#include <troupe/device_call.hpp>
#include <troupe/error.hpp>
#include <troupe/shape.hpp>
#include <troupe/view.hpp>

namespace troupe {

/// A parameter of a kernel's signature: an N-d array of T that the kernel reads (`read`). Parameters that are none of
/// `in`, `out`, `inout` and `red`, and none of the lists below, are passed by value.
template <class T, int N>
struct in {};
/// A parameter of a kernel's signature: an N-d array of T that the kernel writes (`write`).
template <class T, int N>
struct out {};
/// A parameter of a kernel's signature: an N-d array of T that the kernel updates (`update`).
template <class T, int N>
struct inout {};
/// A parameter of a kernel's signature: an N-d array of T into which the kernel reduces (`reduce`).
template <class T, int N>
struct red {};
/// A parameter of a kernel's signature: a list of N-d arrays of T that the kernel reads (`read_all`), whose length is
/// known at the call. The body gets a `std::span<const view<const T, N>>`, in the list's order.
///
///     inline constexpr auto add_up = troupe::kernel<troupe::in_all<float, 1>, troupe::out<float, 1>>("add_up")
///         .on(troupe::cpu, [](std::span<const view<const float, 1>> parts, view<float, 1> sum) { ... });
///     rt.spawn(add_up, read_all(parts), write(sum));
///
/// A parameter `std::span<const T>` is a list of values: the call passes a vector or span of futures of T, whose values
/// the body gets one after the other, or a contiguous range of T (or the future of one; not text between quotes), which
/// is copied into the task. T is trivially copyable; a span of another T is passed as it is, and stays here. Kernels
/// with lists run on cores and nodes, and on accelerators by a `routine`; a body as text has no parameters for lists.
template <class T, int N>
struct in_all {};
/// A parameter of a kernel's signature: a list of N-d arrays of T that the kernel writes (`write_all`). The body gets a
/// `std::span<const view<T, N>>`.
template <class T, int N>
struct out_all {};
/// A parameter of a kernel's signature: a list of N-d arrays of T that the kernel updates (`update_all`). The body gets
/// a `std::span<const view<T, N>>`.
template <class T, int N>
struct inout_all {};

/// The type of `cpu`, a tag for `kernel::on`.
struct cpu_t {
  static constexpr device_kind kind = device_kind::cpu;
};
/// The tag of bodies for CPU cores.
inline constexpr cpu_t cpu{};
/// The type of the tags of bodies for accelerators of these kinds.
template <device_kind... Kinds>
struct accelerator_t {};
/// Tags of bodies for accelerators of one kind.
inline constexpr accelerator_t<device_kind::cuda> cuda{};
inline constexpr accelerator_t<device_kind::hip> hip{};
inline constexpr accelerator_t<device_kind::opencl> opencl{};
inline constexpr accelerator_t<device_kind::sim> sim{};
/// The tag of bodies for all accelerators: one text for every vendor.
inline constexpr accelerator_t<device_kind::cuda, device_kind::hip, device_kind::opencl, device_kind::sim> gpu{};

/// A body as text: one function in the portable kernel dialect, C with macros that the compilers of all accelerators
/// know. It is compiled for a device when it is first used there. For `kernel<in<float, 1>, out<float, 1>, float>`:
///
///     GPU_KERNEL void scale(GPU_IN(float, a), GPU_OUT(float, b), const float factor) {
///       const long i = GPU_LO(b, 0) + GPU_GLOBAL_ID(0);
///       if (i < GPU_HI(b, 0)) GPU_AT1(b, i) = factor * GPU_AT1(a, i);
///     }
///
/// Parameters: each array of the signature is one `GPU_IN(T, name)`, `GPU_OUT(T, name)` or `GPU_INOUT(T, name)` (a
/// reduction: `GPU_INOUT` of the partial result), in the signature's order; each scalar is a parameter by value.
///
/// Elements: `GPU_AT1(a, i)` to `GPU_AT4(a, i, j, k, l)` are elements by coordinates of the whole array; `GPU_LO(a, d)`
/// and `GPU_HI(a, d)` are the box of this task, dimension 0 being the slowest.
///
/// Work-items: `GPU_GLOBAL_ID(d)` is the work-item's number, d = 0 being the fastest. There is at least one work-item
/// for each element of the first array that is written or updated, or else of the first that is read. The last
/// dimension of that array is work-item dimension 0 (of four dimensions the two slowest are one). The function checks
/// its bounds.
///
/// docs/gpu.md has the rest of the dialect: groups, barriers, atomics, names to avoid. All pointers are to string
/// literals.
struct source {
  const char* text = "";
  const char* entry = "";
  /// Work-items per group, dimension 0 first; zeros: 256, 16 x 16 or 16 x 4 x 4.
  std::array<std::uint16_t, 3> group{};
};

/// A kernel is a computation with a name, typed parameters, and a body for each kind of device that can run it. It is a
/// constant: make it `inline constexpr` or `static const` and use it everywhere; copies are cheap. The name must live
/// as long as the program (a string literal). Bodies are functions or lambdas without captures; to capture, spawn the
/// lambda itself.
template <class... Parameters>
class kernel {
 public:
  /// Used by the library: the CPU body on its own, small enough to travel inside a task.
  struct cpu_body {
    void (*with_context)(task_context&, typename detail::parameter<Parameters>::type...) = nullptr;
    void (*plain)(typename detail::parameter<Parameters>::type...) = nullptr;
    using kernel_parameters = std::tuple<typename detail::parameter<Parameters>::type...>;
    void operator()(task_context& c, typename detail::parameter<Parameters>::type... p) const {
      if (detail::argument_sink* sink = c.sink())
        hand_over(*sink, p...);
      else if (with_context)
        with_context(c, p...);
      else
        plain(p...);
    }

   private:
    static void hand_over(detail::argument_sink& to, typename detail::parameter<Parameters>::type... p) {
      if (to.wants_tuple()) {
        const std::tuple<typename detail::parameter<Parameters>::type...> all(p...);
        to.tuple(&all);
        return;
      }
      (detail::give(to, p), ...);
    }
  };

  /// A kernel without bodies; `on` adds them.
  constexpr explicit kernel(const char* name) : info_{.name = name} {
    // The signature is part of the identity: two kernels of one name and different parameters do not share a model.
    info_.key = detail::hash_of(name);
    info_.key = detail::hash_of(std::string_view(signature()), info_.key);
    info_.kinds = 0;
    info_.portable = (detail::parameter<Parameters>::travels && ...);
    [[maybe_unused]] std::size_t arrays = 0;
    (note<Parameters>(arrays), ...);
  }

  /// A copy with a body for CPU cores: `void(view..., scalar...)`, optionally with `task_context&` first.
  template <class F>
  constexpr kernel on(cpu_t, F f) const {
    kernel k = *this;
    using with_context = void (*)(task_context&, typename detail::parameter<Parameters>::type...);
    using plain = void (*)(typename detail::parameter<Parameters>::type...);
    static_assert(std::is_convertible_v<F, with_context> || std::is_convertible_v<F, plain>,
                  "a kernel body is a function or a lambda without captures whose parameters are the views and "
                  "scalars of the kernel's signature (of its lists, std::span<const ...> of them), optionally with "
                  "task_context& first");
    if constexpr (std::is_convertible_v<F, with_context>)
      k.cpu_.with_context = f;
    else
      k.cpu_.plain = f;
    k.info_.kinds |= 1u << static_cast<int>(device_kind::cpu);
    return k;
  }

  /// A copy with a body for accelerators of one kind, or of all (`gpu`).
  template <device_kind... Kinds>
  constexpr kernel on(accelerator_t<Kinds...>, const source& body) const {
    static_assert((std::is_trivially_copyable_v<typename detail::parameter<Parameters>::type> && ...),
                  "scalars of kernels with bodies for accelerators are passed as bytes");
    static_assert(!(detail::parameter<Parameters>::is_list || ...),
                  "a body as text has no parameters for lists: give the accelerator a routine");
    kernel k = *this;
    for (const device_kind kind : {Kinds...}) {
      k.info_.texts[static_cast<std::size_t>(kind)] = {body.text, body.entry, body.group};
      k.info_.kinds |= static_cast<unsigned char>(1u << static_cast<int>(kind));
    }
    return k;
  }

  /// A copy with a body for accelerators of one kind, or of all, that drives the device itself: a vendor's library
  /// (device_call.hpp).
  template <device_kind... Kinds, auto F>
  constexpr kernel on(accelerator_t<Kinds...>, routine_t<F>) const {
    static_assert(std::is_invocable_v<decltype(F), device_call&, typename detail::parameter<Parameters>::type...>,
                  "a routine is a function or a lambda without captures: void(device_call&, view..., scalar...)");
    kernel k = *this;
    for (const device_kind kind : {Kinds...}) {
      k.info_.routines[static_cast<std::size_t>(kind)] =
          &detail::run_routine<F, typename detail::parameter<Parameters>::type...>;
      k.info_.kinds |= static_cast<unsigned char>(1u << static_cast<int>(kind));
    }
    return k;
  }

  /// A copy that asks for these quantities at every call. The list must live as long as the program.
  template <std::size_t Count>
  constexpr kernel needs(const resource (&list)[Count]) const {
    kernel k = *this;
    k.info_.resources = list;
    k.info_.resource_count = Count;
    return k;
  }
  /// A copy whose calls must pass arrays of these shapes (shape.hpp), 8 rules at most: `requiring(same_shape(0, 1))`.
  /// Another call throws `error(bad_argument)`; one that another node has sent fails with that error, and the body does
  /// not run. A wrong rule (about a parameter that is no array or a dimension that the array does not have, or with a
  /// negative size or margin) does not compile if the kernel is a constant, and throws `error(bad_argument)` elsewhere.
  /// A rule about a list holds for each of its arrays, with another array or with the array of the same place in
  /// another list, which is then as long.
  template <class... Rules>
  constexpr kernel requiring(const Rules&... rules) const {
    kernel k = *this;
    (k.add(rules), ...);
    return k;
  }
  /// Sets the re-execution policy of the copy. `pure` (the default), `idempotent`: a task may run again after a failure
  /// of its device or node, or if what it wrote is lost.
  constexpr kernel pure() const { return repeat(detail::purity::pure); }
  constexpr kernel idempotent() const { return repeat(detail::purity::idempotent); }
  /// Sets the re-execution policy of the copy to: never. `task_options::retries` is then `error(bad_argument)`; what
  /// the task wrote on another node is copied to the submitter before the task ends; and if the node that ran it is
  /// lost, the task ends with `error(unknown_outcome)`.
  constexpr kernel once() const { return repeat(detail::purity::once); }

  /// The name that the kernel was made with.
  constexpr const char* name() const { return info_.name; }
  /// Used by the library.
  constexpr const detail::kernel_info& info() const { return info_; }
  /// Used by the library.
  constexpr cpu_body body() const { return cpu_; }

 private:
  static constexpr const char* signature() { return __PRETTY_FUNCTION__; }
  template <class P>
  constexpr void note(std::size_t& arrays) {
    if (detail::parameter<P>::rank == 0) return;
    if (detail::parameter<P>::is_list) {
      if (arrays >= 64) throw error(errc::bad_argument, "kernel: a list behind 64 arrays and lists");
      info_.lists |= std::uint64_t{1} << arrays;
    }
    ++arrays;
  }
  constexpr void add(shape_rule r) {
    if (info_.shape_count == detail::shape_rules_max)
      throw error(errc::bad_argument, "kernel::requiring: more than 8 rules");
    const bool two =
        r.is == shape_rule::what::same_shape || r.is == shape_rule::what::same_size || r.is == shape_rule::what::covers;
    const bool same_rank = r.is == shape_rule::what::same_shape || r.is == shape_rule::what::covers;
    const int a = rank(r.a), b = two ? rank(r.b) : a;
    if (a == 0 || b == 0 || r.a_dim >= a || r.b_dim >= b || (same_rank && a != b))
      throw error(errc::bad_argument,
                  "kernel::requiring: a rule about arrays or dimensions that the kernel does not have");
    if (r.size < 0)
      throw error(errc::bad_argument, "kernel::requiring: a size or a margin below 0, which no array has");
    r.a = array_before(r.a);
    r.b = array_before(r.b);
    info_.shapes[info_.shape_count++] = r;
  }
  static constexpr int rank(std::size_t parameter) {
    constexpr int ranks[] = {detail::parameter<Parameters>::rank..., 0};
    return parameter < sizeof...(Parameters) ? ranks[parameter] : 0;
  }
  // How many parameters before it are arrays.
  static constexpr std::uint8_t array_before(std::size_t parameter) {
    std::uint8_t n = 0;
    for (std::size_t i = 0; i < parameter; ++i)
      if (rank(i) != 0) ++n;
    return n;
  }
  constexpr kernel repeat(detail::purity p) const {
    kernel k = *this;
    k.info_.repeat = p;
    return k;
  }

  detail::kernel_info info_;
  cpu_body cpu_{};
};

}  // namespace troupe
