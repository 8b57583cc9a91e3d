// Streams of oneTBB: parallel_pipeline, and the flow graph with a limiter. Of frames the faster of the two counts.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "../streams/problem.hpp"

#include <cstdint>
#include <memory>
#include <vector>

#include <oneapi/tbb/concurrent_queue.h>
#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/parallel_pipeline.h>

namespace bench {

/// Serial stages in order; `source(i)` makes item i.
template <class T, class Source, class Stage, class Sink>
cost tbb_pipeline(const stream_problem& p, std::size_t tokens, Source source, Stage stage, Sink sink) {
  namespace tbb = oneapi::tbb;
  const auto serial = tbb::filter_mode::serial_in_order;
  std::size_t i = 0;
  tbb::filter<void, T> all(serial, [&](tbb::flow_control& flow) {
    if (i == p.items) {
      flow.stop();
      return T{};
    }
    return source(i++);
  });
  for (int k = 0; k < p.stages; ++k) all = all & tbb::filter<T, T>(serial, stage);
  const meter clock;
  tbb::parallel_pipeline(tokens, all & tbb::filter<T, void>(serial, sink));
  return clock.stop();
}

/// Serial lightweight nodes behind a limiter.
template <class T, class Source, class Stage, class Sink>
cost tbb_flow(const stream_problem& p, std::size_t most, Source source, Stage stage, Sink sink) {
  namespace flow = oneapi::tbb::flow;
  using node = flow::function_node<T, T, flow::queueing_lightweight>;
  flow::graph g;
  std::size_t i = 0;
  flow::input_node<T> first(g, [&](oneapi::tbb::flow_control& end) {
    if (i == p.items) {
      end.stop();
      return T{};
    }
    return source(i++);
  });
  flow::limiter_node<T> limiter(g, most);
  std::vector<std::unique_ptr<node>> nodes;
  for (int k = 0; k < p.stages; ++k)
    nodes.push_back(std::make_unique<node>(g, flow::serial, [stage](T x) noexcept { return stage(x); }));
  flow::function_node<T, flow::continue_msg, flow::queueing_lightweight> last(g, flow::serial, [&](T x) noexcept {
    sink(x);
    return flow::continue_msg();
  });
  flow::make_edge(first, limiter);
  flow::make_edge(limiter, *nodes.front());
  for (std::size_t k = 0; k + 1 < nodes.size(); ++k) flow::make_edge(*nodes[k], *nodes[k + 1]);
  flow::make_edge(*nodes.back(), last);
  flow::make_edge(last, limiter.decrementer());
  const meter clock;
  first.activate();
  g.wait_for_all();
  return clock.stop();
}

inline cost tbb_stream(stream_problem& p) {
  using frame = std::vector<std::uint8_t>;
  if (p.kind == stream_kind::frames) {
    std::vector<frame> frames(stream_problem::frames_max);
    oneapi::tbb::concurrent_bounded_queue<frame*> idle;
    for (frame& f : frames) idle.push(&f);
    const auto source = [&](std::size_t i) {
      frame* f = nullptr;
      idle.pop(f);
      stream_problem::fill(*f, i);
      return f;
    };
    const auto stage = [](frame* f) {
      stream_problem::change(*f);
      return f;
    };
    const auto by = [&](auto run) {
      stream_problem own(p.kind, p.stages, p.items);
      const cost spent = run(own, [&](frame* f) {
        own.take(*f);
        idle.push(f);
      });
      own.check();
      return spent;
    };
    const cost piped = by([&](stream_problem& own, auto sink) {
      return tbb_pipeline<frame*>(own, stream_problem::frames_max, source, stage, sink);
    });
    const cost flowed = by([&](stream_problem& own, auto sink) {
      return tbb_flow<frame*>(own, stream_problem::frames_max, source, stage, sink);
    });
    for (std::size_t i = 0; i < p.items; ++i) p.take(2 * ((i + static_cast<std::size_t>(p.stages)) & 255));
    return piped.nanoseconds < flowed.nanoseconds ? piped : flowed;
  }
  if (p.kind == stream_kind::timed)
    return tbb_pipeline<std::int64_t>(
        p, 8, [&](std::size_t i) { return p.wait_until_due(i); }, [](std::int64_t x) { return x; },
        [&](std::int64_t x) { p.take_due(x); });
  const auto source = [](std::size_t i) { return std::uint64_t{i}; };
  const auto stage = [](std::uint64_t x) { return x + 1; };
  const auto sink = [&](std::uint64_t x) { p.take(x); };
  return p.kind == stream_kind::fused ? tbb_pipeline<std::uint64_t>(p, 64, source, stage, sink)
                                      : tbb_flow<std::uint64_t>(p, 64, source, stage, sink);
}

}  // namespace bench
