// What this file is for: all ways to find candidates behind one seam, each candidate told when it is due.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include <troupe/error.hpp>

#include "net/credentials/credentials.hpp"
#include "net/discovery.hpp"
#include "net/discovery/lookout.hpp"
#include "net/discovery/multicast.hpp"

namespace troupe::net {

namespace {

using namespace std::chrono_literals;

void check(const discovery_options& o) {
  const auto demand = [](bool right, const std::string& what) {
    if (!right) throw error(errc::bad_argument, "discovery: " + what);
  };
  for (const auto* some : {&o.seeds, &o.names})
    for (const endpoint& e : *some)
      demand(!e.host.empty() && e.port != 0, "'" + e.text() + "' is not an address to look for: host:port");
  demand(o.look_every > 0ms && o.tell_again > 0ms, "the time between two looks is longer than 0");
  if (!o.multicast) return;
  demand(!o.secrets.empty(),
         "multicast needs the cluster's secret, or a secret file of its own where nodes have "
         "certificates: datagrams are signed");
  demand(!o.self.cluster.empty(), "multicast needs the cluster's name");
  demand(o.multicast->announce_every >= 10ms, "a node announces itself every 10 ms at most");
  demand(o.multicast->each_per_second > 0 && o.multicast->all_per_second > 0, "a limit of datagrams is 1 at least");
}

class all_ways final : public discovery {
 public:
  explicit all_ways(discovery_options o) : options_(std::move(o)) { check(options_); }
  ~all_ways() override {
    stop();
    wipe(options_.secrets);
  }

  void start(std::function<void(std::vector<endpoint>)> found) override {
    const std::lock_guard lock(mutex_);
    if (multicast_ || lookout_) throw error(errc::bad_argument, "discovery has been started already");
    const auto filter = [this, found = std::move(found)](std::vector<endpoint> some) {
      const std::lock_guard one_at_a_time(found_mutex_);
      keep_due(some);
      if (!some.empty()) found(std::move(some));
    };
    const bool looks = !options_.seeds.empty() || !options_.file.empty() || !options_.names.empty();
    if (looks) lookout_ = std::make_unique<lookout>(options_, filter);
    try {
      if (options_.multicast) multicast_ = std::make_unique<multicast>(options_, filter);
    } catch (...) {
      lookout_.reset();
      throw;
    }
  }

  void stop() override {
    std::unique_ptr<lookout> looking;
    std::unique_ptr<multicast> hearing;
    {
      // Not while the threads are waited for: `found` may be asking for counts.
      const std::lock_guard lock(mutex_);
      looking = std::move(lookout_);
      hearing = std::move(multicast_);
      if (hearing) last_counts_ = hearing->counts();
    }
  }

  discovery_counts counts() const override {
    const std::lock_guard lock(mutex_);
    return multicast_ ? multicast_->counts() : last_counts_;
  }

  std::vector<std::string> problems() const override {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> all;
    if (lookout_) all = lookout_->problems();
    if (multicast_)
      for (auto& p : multicast_->problems()) all.push_back(std::move(p));
    return all;
  }

 private:
  // Leaves those that have not been told for a while.
  void keep_due(std::vector<endpoint>& some) {
    const auto now = std::chrono::steady_clock::now();
    std::erase_if(told_, [&](const auto& t) { return now - t.second >= options_.tell_again; });
    std::erase_if(some, [&](const endpoint& e) { return !told_.emplace(e, now).second; });
  }

  discovery_options options_;
  mutable std::mutex mutex_;
  std::mutex found_mutex_;
  std::map<endpoint, std::chrono::steady_clock::time_point> told_;  // guarded by found_mutex_
  std::unique_ptr<lookout> lookout_;
  std::unique_ptr<multicast> multicast_;
  discovery_counts last_counts_;
};

}  // namespace

std::unique_ptr<discovery> make_discovery(discovery_options o) { return std::make_unique<all_ways>(std::move(o)); }

}  // namespace troupe::net
