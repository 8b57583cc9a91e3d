// What this file is for: stages that a program offers by name, for pipelines that are put together while it runs.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   st::offer<reading, reading>("calibrate", [](const st::flow<reading>& f, const std::string& how) {
//     return f | st::map("calibrate " + how, calibration(how), {.parallel = {1, 4}});
//   });
//   auto f = readings | st::offered<reading>("calibrate", "indoors");
//
// Names are those of the process. What is offered may be one stage or many; names of stages are those that it gives
// them, so an offer that is taken twice in one stream gives them different ones.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <troupe/error.hpp>
#include <troupe/stream/pipeline.hpp>

namespace troupe::stream {

/// What is offered by a name; its items' types as a compiler writes them, to be read.
struct offer_description {
  std::string name, in, out;
};
/// All offers of this process, by their names. Any thread.
std::vector<offer_description> offers();

}  // namespace troupe::stream

namespace troupe::detail::streams {

/// An offer of any types.
class offer_base {
 public:
  virtual ~offer_base() = default;
  virtual const std::type_info& in() const = 0;
  virtual const std::type_info& out() const = 0;
};
template <class In, class Out>
class offer_of final : public offer_base {
 public:
  using maker = std::function<troupe::stream::flow<Out>(const troupe::stream::flow<In>&, const std::string&)>;
  explicit offer_of(maker m) : make(std::move(m)) {}
  const std::type_info& in() const override { return typeid(In); }
  const std::type_info& out() const override { return typeid(Out); }
  const maker make;
};
/// Throws error(bad_argument) for a name that is empty or is taken.
void add_offer(const std::string& name, std::shared_ptr<const offer_base>);
/// False: there was none.
bool remove_offer(const std::string& name);
/// Throws error(bad_argument) where there is none, or one of other types.
std::shared_ptr<const offer_base> find_offer(const std::string& name, const std::type_info& in,
                                             const std::type_info& out);

}  // namespace troupe::detail::streams

namespace troupe::stream {

/// Offers by that name what `make(flow, arguments)` puts behind a flow of `In`: it returns a flow of `Out`, and is
/// called, by any thread, each time that the offer is taken. Throws `error(bad_argument)` for a name that is empty or
/// is offered already. Any thread.
template <class In, class Out, class Make>
void offer(const std::string& name, Make make) {
  static_assert(std::is_invocable_r_v<flow<Out>, Make&, const flow<In>&, const std::string&>,
                "troupe::stream::offer: the function does not make a flow<Out> of a flow<In> and a string");
  parts::add_offer(name, std::make_shared<const parts::offer_of<In, Out>>(std::move(make)));
}
/// Withdraws an offer; streams that have taken it keep what they have. False: there is none of that name. Any thread.
inline bool withdraw(const std::string& name) { return parts::remove_offer(name); }

namespace stages {

template <class Out>
struct offered {
  std::string name, arguments;
  template <class In>
  flow<Out> after(const flow<In>& in) && {
    const auto found = parts::find_offer(name, typeid(In), typeid(Out));
    return static_cast<const parts::offer_of<In, Out>&>(*found).make(in, arguments);
  }
};

}  // namespace stages

/// Puts what is offered by that name behind a flow. Throws `error(bad_argument)` where nothing is, or something for
/// items of other types.
template <class Out>
stages::offered<Out> offered(std::string name, std::string arguments = {}) {
  return {std::move(name), std::move(arguments)};
}

}  // namespace troupe::stream
