// What this file is for: pipelines and flows: what stages are joined to before a stream starts.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <troupe/detail/streams/node.hpp>
#include <troupe/detail/streams/running.hpp>
#include <troupe/error.hpp>
#include <troupe/runtime.hpp>
#include <troupe/stream/options.hpp>
#include <troupe/stream/report.hpp>
#include <troupe/stream/running.hpp>

namespace troupe::stream {

/// Stages that are joined, from sources to sinks. It can be started once.
class pipeline {
 public:
  /// Checks what `start` checks and says how the stream will run. No stages can be joined to a circle. Flows that come
  /// from one `tee` and meet again in a `zip` or a `lookup` may wait for each other where one of them is held back for
  /// more items than the other one's edges hold; that depends on the data, so it is not found here but reported as a
  /// stall when it happens.
  layout check(runtime& rt) const { return parts::entrance::check(rt, *plan()); }
  /// Starts the stream on the cores of a runtime. Throws `error(bad_argument)`, with the stage's name, if an end is
  /// open, two stages have one name, an option makes no sense, or edges may hold more than `options::memory_bytes`; and
  /// if it has been started before.
  [[nodiscard]] running start(runtime& rt, const start_options& o = {}) {
    return running(parts::entrance::start(rt, plan(), o));
  }
  /// Both, as one stream: for branches of a `tee` or a `route`, and for several chains.
  friend pipeline operator+(pipeline a, const pipeline& b) {
    join(a.plan_, b.plan_);
    return a;
  }

  /// Used by the library.
  using draft = std::shared_ptr<parts::plan>;
  explicit pipeline(draft p) : plan_(std::move(p)) {}
  draft plan() const { return root(plan_); }
  static draft root(draft p) {
    if (!p) throw error(errc::bad_argument, "the pipeline, or the flow, was moved from");
    while (p->joined) p = p->joined;
    return p;
  }
  static void join(const draft& a, const draft& b) {
    const draft to = root(a), from = root(b);
    if (to == from) return;
    for (auto& n : from->nodes) to->nodes.push_back(std::move(n));
    from->nodes.clear();
    from->joined = to;
  }

 private:
  draft plan_;
};

/// What comes out of a stage and has not gone into another one yet. A handle; goes on to one stage.
template <class T>
class flow {
 public:
  static_assert(std::is_nothrow_move_constructible_v<T>,
                "troupe::stream: items must be movable without throwing: their move constructor must be noexcept");
  using item = T;
  /// Used by the library.
  flow(pipeline::draft p, parts::outlet<T>& from) : plan_(std::move(p)), from_(&from) {}
  pipeline::draft plan() const { return pipeline::root(plan_); }
  parts::outlet<T>& from() const { return *from_; }
  /// Joins a node to it.
  template <class Node>
  Node& lead_to(std::unique_ptr<Node> n) const {
    Node& added = *n;
    connect(added, added, 0);
    plan()->nodes.push_back(std::move(n));
    return added;
  }
  void connect(parts::node& to, parts::port_base<T>& port, std::size_t number) const {
    if (from_->to)
      throw error(errc::bad_argument, "stage '" + to.name() + "': what comes out of '" + from_->from->name() +
                                          "' goes to '" + from_->to->name() + "' already; use tee for copies");
    from_->to = &to;
    from_->port = static_cast<int>(number);
    from_->target = &port;
    if (to.ports.size() <= number) to.ports.resize(number + 1);
    to.ports[number].push_back(from_);
  }

 private:
  pipeline::draft plan_;
  parts::outlet<T>* from_;
};

namespace stages {

template <class T>
flow<T> out_of(const pipeline::draft& p, parts::node& n, parts::outlet<T>& o) {
  o.from = &n;
  n.outlets.push_back(&o);
  return flow<T>(p, o);
}
template <class T, class Node>
flow<T> begin(std::unique_ptr<Node> n) {
  auto p = std::make_shared<parts::plan>();
  Node& added = *n;
  p->nodes.push_back(std::move(n));
  return out_of<T>(p, added, added.out);
}
[[noreturn]] inline void refuse(const std::string& stage, const std::string& why) {
  throw error(errc::bad_argument, "stage '" + stage + "': " + why);
}
template <class T, class F>
void check_failure(const std::string& stage, const stage_options& o) {
  const bool keeps = o.fail.retries != 0 || o.fail.last == failure::act::dead_letter;
  if (keeps && !parts::takes_const<F, T>)
    refuse(stage, "retries and dead letters need a function that takes a const item, for it leaves the item as it is");
}
inline void check_ahead(const std::string& stage, std::size_t items) {
  if (items < 1 || items > (std::size_t{1} << 24))
    refuse(stage, std::to_string(items) + " items of a flow ahead of the other one; 1 to 2^24");
}
inline void check_lanes(const std::string& stage, const stage_options& o) {
  if (o.parallel != lanes(1)) refuse(stage, "it runs one call at a time; only map has `parallel`");
}

}  // namespace stages

}  // namespace troupe::stream
