// What this file is for: rounds of looking.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/discovery/lookout.hpp"

#include <utility>

#include <troupe/error.hpp>

namespace troupe::net {

lookout::lookout(const discovery_options& o, std::function<void(std::vector<endpoint>)> found)
    : seeds_(o.seeds), names_(o.names), every_(o.look_every), found_(std::move(found)) {
  if (!o.file.empty()) in_file_ = *file_.emplace(o.file).look();
  thread_ = std::thread([this] { run(); });
}

lookout::~lookout() {
  stop_.call();
  thread_.join();
}

std::vector<std::string> lookout::problems() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> all;
  for (const auto& [of, what] : problems_) all.push_back(what);
  return all;
}

void lookout::set_problem(const std::string& of, std::string what) {
  const std::lock_guard lock(mutex_);
  if (what.empty())
    problems_.erase(of);
  else
    problems_[of] = std::move(what);
}

void lookout::run() {
  auto next = std::chrono::steady_clock::now();
  for (;;) {
    // Addresses that are known already do not wait for names.
    std::vector<endpoint> all = seeds_;
    all.insert(all.end(), in_file_.begin(), in_file_.end());
    if (!all.empty()) found_(std::move(all));
    if (!names_.empty()) be_an_impatient_resolver();
    for (const endpoint& n : names_) {
      look_at(n);
      if (const auto& addresses = resolved_[n]; !addresses.empty()) found_(addresses);
      if (stop_.wait({}, {})) return;
    }
    next = std::max(next + every_, std::chrono::steady_clock::now());
    if (stop_.wait({}, next - std::chrono::steady_clock::now())) return;
    look_at_file();
  }
}

void lookout::look_at_file() {
  if (!file_) return;
  try {
    if (auto now = file_->look()) {
      in_file_ = std::move(*now);
      set_problem("", "");
    }
  } catch (const error& e) {
    set_problem("", e.what());
  }
}

void lookout::look_at(const endpoint& name) {
  try {
    resolved_[name] = resolve(name);
    set_problem(name.text(), "");
  } catch (const error& e) {
    set_problem(name.text(), e.what());
  }
}

}  // namespace troupe::net
