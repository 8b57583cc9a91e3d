// Time per item of streams, and latency at a fixed rate.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "rows.hpp"

#include "problem.hpp"

#include <string>

namespace bench {

namespace {

std::optional<double> per_item(contender& who, stream_problem problem, double unit_ns) {
  const auto spent = who.stream(problem);
  if (!spent) return {};
  problem.check();
  return spent->nanoseconds / static_cast<double>(problem.items) / unit_ns;
}

figures measure(contender& who, const settings& how) {
  const std::size_t numbers = how.quick ? 200'000 : 2'000'000;
  figures found;
  for (const stream_kind k : {stream_kind::fused, stream_kind::edges})
    for (const int stages : {1, 3, 10}) found.push_back(per_item(who, {k, stages, numbers}, 1));
  found.push_back(per_item(who, {stream_kind::frames, 3, how.quick ? 200U : 2'000U}, 1e3));
  stream_problem timed(stream_kind::timed, 3, how.quick ? 4'000 : 40'000);
  const auto spent = who.stream(timed);
  if (spent) timed.check();
  for (const double q : {0.5, 0.99, 0.999}) {
    if (spent)
      found.push_back(timed.quantile_us(q));
    else
      found.push_back({});
  }
  return found;
}

}  // namespace

group stream_group(const settings&) {
  group all{.name = "stream",
            .about = "streams: numbers and frames through empty and working stages; latency at 20,000 items a second",
            .rows = {},
            .measure = measure};
  for (const char* stages : {"1", "3", "10"})
    all.rows.push_back({std::string("stream/fused/") + stages, "ns", better::lower, {}, {{"tbb", 4}}});
  for (const char* stages : {"1", "3", "10"})
    all.rows.push_back({std::string("stream/edges/") + stages, "ns", better::lower, {}, {{"tbb", 1 / 0.7}}});
  all.rows.push_back({"stream/frames", "us", better::lower, {}, {{"tbb", 1}}});
  for (const char* q : {"p50", "p99", "p99.9"})
    all.rows.push_back({std::string("stream/latency/") + q, "us", better::lower, {}, {{"tbb", 1}}});
  return all;
}

}  // namespace bench
