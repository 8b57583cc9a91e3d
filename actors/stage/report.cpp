// What this file is for: what a stream reports: counted in a moment in which nothing of it runs.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <utility>

#include "actors/stage/crew.hpp"

namespace troupe::detail::stage {

namespace ts = troupe::stream;

namespace {
// A report waits so long for functions that run.
constexpr std::chrono::milliseconds pause_max{10};
}  // namespace

ts::report crew::report() {
  ts::report r;
  bool resumes = false;
  {
    std::unique_lock hold(lock_);
    // Between two reports strands get their turn: whoever asks all the time must not stop the stream.
    const bool waits = !runs_on_this_thread();
    ++askers_;
    if (waits)
      changed_.wait_for(hold, pause_max, [this] { return runs_ != runs_at_report_ || line_.empty() || is_over(); });
    --askers_;
    ++pauses_;
    interrupted_.store(true);
    r.is_exact = waits && changed_.wait_for(hold, pause_max, [this] { return running_ == 0; });
    count(r);
    runs_at_report_ = runs_;
    if (--pauses_ == 0 && !is_over()) {
      interrupted_.store(false);
      resumes = wants_runner();
      if (resumes) {
        ++runners_;
        spawned_ns_ = streams::now_ns();
      }
    }
  }
  if (resumes) add_runner(runner_is::added);
  return r;
}

void crew::count(ts::report& r) const {
  r.name = options_.name;
  r.state = state_;
  r.error = error_;
  r.elapsed = ended_at_.value_or(streams::now()) - begun_;
  for (const auto& n : plan_->nodes) {
    ts::stage_report s;
    s.name = n->name();
    s.kind = n->kind();
    n->add_to(s);
    if (s.watermark) s.watermark_lag = std::chrono::nanoseconds(streams::wall_ns()) - s.watermark->time_since_epoch();
    if (n->edge_before) s.lanes = std::min(n->options.parallel.most, n->edge_before->lanes_in_use());
    r.items.pushed += n->pushed();
    r.items.delivered += n->delivered();
    r.items.created += s.created;
    r.items.absorbed += s.absorbed;
    r.items.dropped += s.dropped;
    r.items.dead += s.dead;
    r.items.in_flight += s.held;
    r.latency += n->latency();
    r.stages.push_back(std::move(s));
  }
  const auto add = [&](const streams::edge_base& e, bool is_way_in) {
    ts::edge_report x;
    e.report(x);
    if (is_way_in) r.items.pushed += x.pushed;  // threads outside go on pushing: of the same moment as what is in it
    r.items.dropped += x.dropped;
    r.items.in_flight += x.items + x.waiting;
    const std::int64_t since = e.waits_since(), now = streams::now_ns();
    if (!is_over() && since != 0 && now - since > std::chrono::nanoseconds(options_.stalled_after).count())
      r.stalls.push_back(stall_of(e, now - since));
    r.edges.push_back(std::move(x));
  };
  for (const auto& n : plan_->nodes)
    if (const streams::edge_base* const e = n->own_edge()) add(*e, true);
  for (const auto& e : plan_->edges) add(*e, false);
}

std::string crew::stall_of(const streams::edge_base& e, std::int64_t waits_ns) const {
  std::string text = "nobody has taken an item from the edge before '" + e.to() + "' for " +
                     (waits_ns < 10'000'000'000 ? std::to_string(waits_ns / 1'000'000) + " ms: "
                                                : std::to_string(waits_ns / 1'000'000'000) + " s: ");
  switch (e.behind->at.load()) {
    case streams::strand::phase::runs:
    case streams::strand::phase::runs_again:
      return text + "a function of that stage, or of one behind it, is running";
    case streams::strand::phase::ready:
      return text + "it waits for a worker";
    default:
      return text + "it waits for room behind it, for the time of a retry, or for another flow";
  }
}

}  // namespace troupe::detail::stage
