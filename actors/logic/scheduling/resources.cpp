// What this file is for: accounting of named quantities.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/logic/scheduling/resources.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include <troupe/error.hpp>

namespace troupe::logic {

namespace {
constexpr double slots_max = 65536;

// Returns the whole amount that a request asks of one name, however often it names it.
double asked(const std::vector<resource>& request, const std::string& name) {
  double sum = 0;
  for (const resource& r : request)
    if (r.name == name) sum += r.amount;
  return sum;
}
std::string text_of(double amount) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, amount).ptr};
}
// False for slots and devices, which are counted elsewhere.
bool is_counted(const std::string& name) { return name != "cpu" && name != "gpu"; }
auto find(auto& list, const std::string& name) {
  return std::find_if(list.begin(), list.end(), [&](const resource& r) { return r.name == name; });
}
}  // namespace

resources::resources(const std::vector<resource>& configured, time guess) {
  for (const resource& r : configured) {
    if (std::isnan(r.amount))
      throw error(errc::bad_argument, "options::resources: the amount of '" + r.name + "' is not a number (NaN)");
    if (r.name.empty() || !is_counted(r.name) || r.amount < 0)
      throw error(errc::bad_argument,
                  "options::resources: '" + r.name + "' needs another name than cpu or gpu and an amount of 0 or more");
    if (find(total_, r.name) != total_.end())
      throw error(errc::bad_argument, "options::resources names '" + r.name + "' twice");
    total_.push_back(r);
  }
  free_ = total_;
  for (std::size_t i = 0; i < total_.size(); ++i) lines_.emplace_back(guess);
}

// Calls f(i, amount) for each name that the request wants some of.
template <class F>
void resources::each_asked(const std::vector<resource>& request, F&& f) const {
  for (std::size_t i = 0; i < total_.size(); ++i)
    if (const double amount = asked(request, total_[i].name); amount > 0) f(i, amount);
}

void resources::check(const std::vector<resource>& request) const {
  for (const resource& r : request) {
    if (std::isnan(r.amount))
      throw error(errc::bad_argument, "resource '" + r.name + "': the amount is not a number (NaN)");
    if (r.amount < 0)
      throw error(errc::bad_argument,
                  "resource '" + r.name + "': " + text_of(r.amount) + " asked, a negative amount; ask for 0 or more");
    if (r.name == "cpu") {
      if (r.amount > 1 && (r.amount != std::floor(r.amount) || r.amount > slots_max))
        throw error(errc::bad_argument, "cpu is a number of slots: a whole one, 65536 at most");
      continue;  // placement knows how many slots exist
    }
    if (!is_counted(r.name)) continue;
    if (r.amount == resource::all)
      throw error(errc::bad_argument, "resource '" + r.name + "': all of them can be had of gpu only");
    const auto have = find(total_, r.name);
    if (have == total_.end())
      throw error(errc::no_resource, "resource '" + r.name + "' is not configured: add it to options::resources");
    if (asked(request, r.name) > have->amount)
      throw error(errc::no_resource, "resource '" + r.name + "': " + text_of(asked(request, r.name)) + " asked, " +
                                         text_of(have->amount) +
                                         " is the maximum: ask for less, or raise it in options::resources");
  }
}

bool resources::exists(const std::vector<resource>& request) const {
  return std::ranges::all_of(request, [&](const resource& r) {
    if (!is_counted(r.name)) return true;
    const auto have = find(total_, r.name);
    return have != total_.end() && asked(request, r.name) <= have->amount;
  });
}

bool resources::exceeds(const std::vector<resource>& a, const std::vector<resource>& b) const {
  bool some = false;
  each_asked(b, [&](std::size_t i, double amount) {
    some = some || asked(a, total_[i].name) + amount > total_[i].amount;
  });
  return some;
}

double resources::left_after(const std::vector<resource>& request) const {
  double least = 1;
  for (const resource& r : request) {
    if (!is_counted(r.name)) continue;
    const auto have = find(total_, r.name);
    const double left = have == total_.end() ? -1 : find(free_, r.name)->amount - asked(request, r.name);
    if (left < 0) return left;
    least = std::min(least, have->amount > 0 && std::isfinite(left) ? left / have->amount : 1);
  }
  return least;
}

bool resources::take(const std::vector<resource>& request, const void* who, time now, time lasts) {
  if (left_after(request) < 0) return false;
  each_asked(request, [&](std::size_t i, double amount) {
    free_[i].amount -= amount;
    lines_[i].hold(who, amount, now, lasts);
  });
  return true;
}

void resources::give(const std::vector<resource>& request, const void* who) {
  each_asked(request, [&](std::size_t i, double amount) {
    free_[i].amount += amount;
    lines_[i].end(who);
  });
}

void resources::begin_round() {
  for (reservation& r : lines_) r.begin_round();
}

bool resources::lets_pass(const std::vector<resource>& request, time now, time lasts) const {
  bool all = true;
  each_asked(request, [&](std::size_t i, double amount) { all = all && lines_[i].lets_pass(amount, now, lasts); });
  return all;
}

resources::time resources::begins(const std::vector<resource>& request, time now) const {
  time at = now;
  each_asked(request, [&](std::size_t i, double amount) {
    at = std::max(at, lines_[i].when_back(amount - free_[i].amount, now).at);
  });
  return at;
}

void resources::keep(const std::vector<resource>& request, const void* who, time at, time now) {
  bool earlier = false;
  each_asked(request, [&](std::size_t i, double) { earlier = earlier || lines_[i].is_kept(); });
  if (earlier) return;
  each_asked(request, [&](std::size_t i, double amount) { lines_[i].keep(who, amount, free_[i].amount, at, now); });
}

resources::time resources::look_at(const std::vector<resource>& request, time now, time step) const {
  time at = reservation::never;
  each_asked(request, [&](std::size_t i, double) {
    if (lines_[i].is_kept()) at = std::min(at, lines_[i].look_at(now, step));
  });
  return at;
}

bool asks_for_quantities(const std::vector<resource>& request) {
  return std::ranges::any_of(request, [](const resource& r) { return is_counted(r.name); });
}

int slots_of(const std::vector<resource>& request) {
  const auto cpu = find(request, "cpu");
  return cpu == request.end() ? 1 : static_cast<int>(std::ceil(cpu->amount));
}

}  // namespace troupe::logic
