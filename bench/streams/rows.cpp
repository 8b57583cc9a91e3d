// Time per item of streams, and latency at a fixed rate.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "rows.hpp"

#include "problem.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace bench {

namespace {

std::optional<double> per_item(contender& who, stream_problem problem, double unit_ns) {
  const auto spent = who.stream(problem);
  if (!spent) return {};
  problem.check();
  return spent->nanoseconds / static_cast<double>(problem.items) / unit_ns;
}

// Items a second that go through the peer's pipeline of three stages with 8 tokens, once measured; 0: there is none.
double peer_rate(const settings& how) {
#if defined(TROUPE_BENCH_HAVE_TBB)
  static const double rate = [&] {
    const auto peer = make_tbb();
    peer->start(how.threads, purpose::small_tasks);
    std::vector<double> all;
    for (int i = 0; i < 5; ++i) {
      stream_problem p(stream_kind::timed, 3, how.quick ? 50'000 : 500'000);
      p.rate = 0;
      const auto spent = peer->stream(p);
      all.push_back(static_cast<double>(p.items) / spent->nanoseconds * 1e9);
    }
    peer->stop();
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
  }();
  return rate;
#else
  static_cast<void>(how);
  return 0;
#endif
}

figures measure(contender& who, const settings& how) {
  const std::size_t numbers = how.quick ? 200'000 : 2'000'000;
  figures found;
  for (const stream_kind k : {stream_kind::fused, stream_kind::edges})
    for (const int stages : {1, 3, 10}) found.push_back(per_item(who, {k, stages, numbers}, 1));
  found.push_back(per_item(who, {stream_kind::frames, 3, how.quick ? 200U : 2'000U}, 1e3));
  for (const double rate : {20'000.0, 0.5 * peer_rate(how), 0.9 * peer_rate(how)}) {
    stream_problem timed(stream_kind::timed, 3, static_cast<std::size_t>(rate * (how.quick ? 0.2 : 2)));
    timed.rate = rate;
    const auto spent = rate == 0 ? std::nullopt : who.stream(timed);
    if (spent) timed.check();
    for (const double q : {0.5, 0.99, 0.999}) {
      if (spent)
        found.push_back(timed.quantile_us(q));
      else
        found.push_back({});
    }
  }
  return found;
}

}  // namespace

group stream_group(const settings&) {
  group all{
      .name = "stream",
      .about =
          "streams: numbers and frames through empty and working stages; latency at 20,000 items a second, and at "
          "half and nine tenths of what oneTBB can",
      .rows = {},
      .measure = measure};
  for (const char* stages : {"1", "3", "10"})
    all.rows.push_back({std::string("stream/fused/") + stages, "ns", better::lower, {}, {{"tbb", 4}}});
  for (const char* stages : {"1", "3", "10"})
    all.rows.push_back({std::string("stream/edges/") + stages, "ns", better::lower, {}, {{"tbb", 1 / 0.7}}});
  all.rows.push_back({"stream/frames", "us", better::lower, {}, {{"tbb", 1}}});
  for (const char* at : {"stream/latency/", "stream/latency_half/", "stream/latency_most/"})
    for (const char* q : {"p50", "p99", "p99.9"})
      all.rows.push_back({at + std::string(q), "us", better::lower, {}, {{"tbb", 1}}});
  return all;
}

}  // namespace bench
