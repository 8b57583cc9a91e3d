// Streams of troupe: figures on, as they always are.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "troupe_streams.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <troupe/stream.hpp>

namespace bench {

namespace {

namespace st = troupe::stream;

// So many times the same stage; with an edge before each where they are to lie.
template <class T, class F>
st::flow<T> through(st::flow<T> f, const stream_problem& p, const st::edge_options* edge, F stage) {
  for (int i = 0; i < p.stages; ++i) {
    if (edge) f = f | st::async(*edge);
    f = f | st::map("stage " + std::to_string(i), stage);
  }
  if (edge) f = f | st::async(*edge);
  return f;
}

cost run(troupe::runtime& rt, st::pipeline p) {
  const meter clock;
  auto r = p.start(rt);
  r.wait();
  return clock.stop();
}

}  // namespace

cost stream_on(troupe::runtime& rt, stream_problem& p) {
  if (p.kind == stream_kind::frames) {
    using frame = st::recycled<std::vector<std::uint8_t>>;
    st::recycler<std::vector<std::uint8_t>> memory(stream_problem::frames_max);
    // Two frames in each edge, of which one is worked on: at most nine are in memory.
    const st::edge_options two{.items = 2};
    auto source = st::from("source", [&p, memory, i = std::uint64_t{0}]() mutable -> std::optional<frame> {
      if (i == p.items) return {};
      frame f = memory.take();
      stream_problem::fill(*f, i++);
      return f;
    });
    st::flow<frame> f = source;
    for (int i = 0; i < p.stages; ++i)
      f = f | st::async(two) | st::map("stage " + std::to_string(i), [](frame x) {
            stream_problem::change(*x);
            return x;
          });
    return run(rt, f | st::sink("sink", [&](const frame& x) { p.take(*x); }));
  }
  if (p.kind == stream_kind::timed) {
    auto source = st::from("source", [&p, i = std::size_t{0}]() mutable -> std::optional<std::int64_t> {
      if (i == p.items) return {};
      return p.wait_until_due(i++);
    });
    return run(rt, through(source, p, nullptr, [](std::int64_t x) { return x; }) |
                       st::sink("sink", [&](std::int64_t x) { p.take_due(x); }));
  }
  const st::edge_options edge{};
  auto source = st::from("source", [&p, i = std::uint64_t{0}]() mutable -> std::optional<std::uint64_t> {
    if (i == p.items) return {};
    return i++;
  });
  return run(rt, through(source, p, p.kind == stream_kind::edges ? &edge : nullptr, [](std::uint64_t x) {
                   return x + 1;
                 }) | st::sink("sink", [&](std::uint64_t x) { p.take(x); }));
}

}  // namespace bench
