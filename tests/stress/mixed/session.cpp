// What this file is for: makes the runtime of a plan, keeps count of what bodies hold, and collects complaints.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "session.hpp"

#include <unistd.h>

#include <chrono>
#include <filesystem>

namespace mixed {

namespace {

int limit_of(const plan& p, const std::string& name) {
  if (name == "licence") return p.licences;
  if (name == "token") return p.tokens;
  return 1;  // a device
}

}  // namespace

session::session(const plan& p, planted fault) : plan_(p), planted_(fault) {
  for (const client_plan& c : p.clients) phases_.emplace_back(c.operations.size());
}

void session::start() {
  troupe::options o;
  o.threads = plan_.threads;
  o.core_groups = plan_.core_groups;
  for (const device_plan& d : plan_.devices)
    o.devices.push_back({.name = d.name, .memory_bytes = d.memory_bytes, .lanes = d.lanes});
  if (plan_.devices.empty()) o.devices = {{"none"}};
  const bool folder = plan_.memory_bytes != 0 || plan_.trace;
  if (folder) {
    folder_ = (std::filesystem::temp_directory_path() / ("troupe-mixed-" + std::to_string(::getpid()))).string();
    std::filesystem::create_directories(folder_);
  }
  o.memory_bytes = plan_.memory_bytes;
  if (plan_.memory_bytes != 0) o.spill_directory = folder_;
  if (plan_.trace) o.trace = folder_ + "/trace.json";
  if (!plan_.cost_cache) o.cost_cache = "none";
  o.window = std::chrono::microseconds(plan_.window_us);
  o.spin = std::chrono::microseconds(plan_.spin_us);
  o.card_wait = std::chrono::milliseconds(plan_.card_wait_ms);
  o.waiting_thread_helps = plan_.waiting_thread_helps;
  o.bind_threads = plan_.bind;
  o.tasks_in_flight_max = plan_.tasks_in_flight_max;
  o.decisions_kept = plan_.decisions_kept;
  o.eager_devices = plan_.eager_devices;
  o.resources = {{"licence", static_cast<double>(plan_.licences)}, {"token", static_cast<double>(plan_.tokens)}};
  runtime_ = std::make_unique<troupe::runtime>(o);
  for (const troupe::executor_report& e : runtime_->executors())
    has_devices_ = has_devices_ || e.kind != troupe::device_kind::cpu;
}

void session::stop() {
  const auto before = std::chrono::steady_clock::now();
  const troupe::shutdown_report r = runtime_->shutdown(std::chrono::seconds(30));
  if (!r.complete) complain("the runtime was ended with " + std::to_string(r.queued_abandoned) + " tasks abandoned");
  runtime_.reset();
  if (std::chrono::steady_clock::now() - before > std::chrono::seconds(25)) complain("the runtime took 25 s to end");
  if (!folder_.empty()) {
    std::error_code failed;
    std::filesystem::remove_all(folder_, failed);
  }
}

void session::describe(std::FILE* out) const {
  constexpr const char* names[] = {"not called", "called, not begun", "called, not ended", "begun, not ended", "ended"};
  for (std::size_t c = 0; c < phases_.size(); ++c) {
    // The last ones; of the first many never ran, because what they depend on failed.
    int left = 40;
    for (std::size_t i = phases_[c].size(); i-- > 0 && left > 0;) {
      const phase p = phases_[c][i].load(std::memory_order_relaxed);
      if (p == phase::not_called || p == phase::ended) continue;
      --left;
      std::fprintf(out, "  client %zu, operation %zu: %s: %s\n", c, i, names[static_cast<int>(p)],
                   text(plan_.clients[c].operations[i]).c_str());
    }
  }
}

void session::take(const std::vector<amount_plan>& amounts, std::span<const troupe::held_device> devices) {
  const std::lock_guard hold(lock_);
  for (const amount_plan& a : amounts) {
    if (a.name == "cpu") continue;
    if (a.name == "gpu") {
      if (has_devices_ && devices.size() != static_cast<std::size_t>(a.amount))
        complaints_.push_back("a task that asked for " + std::to_string(a.amount) + " devices has " +
                              std::to_string(devices.size()));
      for (const troupe::held_device& d : devices)
        if (++held_[d.name] > 1) complaints_.push_back("two tasks hold " + d.name);
      continue;
    }
    if ((held_[a.name] += a.amount) > limit_of(plan_, a.name))
      complaints_.push_back("tasks hold " + std::to_string(held_[a.name]) + " of '" + a.name +
                            "', of which there are " + std::to_string(limit_of(plan_, a.name)));
  }
}

void session::give(const std::vector<amount_plan>& amounts, std::span<const troupe::held_device> devices) {
  const std::lock_guard hold(lock_);
  for (const amount_plan& a : amounts)
    if (a.name != "cpu" && a.name != "gpu") held_[a.name] -= a.amount;
  for (const troupe::held_device& d : devices) --held_[d.name];
}

void session::take_cores(int n, const operation& op) {
  if (n == 0) return;
  const std::lock_guard hold(lock_);
  holders_.insert(&op);
  if ((cores_ += n) <= plan_.threads) return;
  std::string who;
  for (const operation* h : holders_) who += "\n    " + text(*h);
  complaints_.push_back("bodies hold " + std::to_string(cores_) + " slots, of which there are " +
                        std::to_string(plan_.threads) + ":" + who);
}

void session::give_cores(int n, const operation& op) {
  if (n == 0) return;
  const std::lock_guard hold(lock_);
  cores_ -= n;
  holders_.erase(holders_.find(&op));
}

void session::complain(const std::string& what) {
  const std::lock_guard hold(lock_);
  complaints_.push_back(what);
}

std::vector<std::string> session::complaints() const {
  const std::lock_guard hold(lock_);
  return complaints_;
}

}  // namespace mixed
