// What this file is for: the stages that this process offers by name.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/stream/offers.hpp>

#include <cxxabi.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <troupe/error.hpp>

namespace troupe::detail::streams {

namespace {

std::string text_of(const std::type_info& t) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(abi::__cxa_demangle(t.name(), nullptr, nullptr, &status),
                                                    std::free);
  return name ? name.get() : t.name();
}

struct all_offers {
  std::mutex lock;
  std::map<std::string, std::shared_ptr<const offer_base>> by_name;
};
// Never destroyed: plugins may withdraw theirs when the process ends.
all_offers& all() {
  static auto* const made = new all_offers;
  return *made;
}

}  // namespace

void add_offer(const std::string& name, std::shared_ptr<const offer_base> o) {
  if (name.empty()) throw error(errc::bad_argument, "an offer of stages without a name");
  all_offers& a = all();
  std::lock_guard hold(a.lock);
  if (!a.by_name.emplace(name, std::move(o)).second)
    throw error(errc::bad_argument, "stages are offered by the name '" + name + "' already");
}

bool remove_offer(const std::string& name) {
  std::shared_ptr<const offer_base> gone;  // goes after the lock: its function may do anything then
  all_offers& a = all();
  std::lock_guard hold(a.lock);
  const auto found = a.by_name.find(name);
  if (found == a.by_name.end()) return false;
  gone = std::move(found->second);
  a.by_name.erase(found);
  return true;
}

std::shared_ptr<const offer_base> find_offer(const std::string& name, const std::type_info& in,
                                             const std::type_info& out) {
  all_offers& a = all();
  std::lock_guard hold(a.lock);
  const auto found = a.by_name.find(name);
  if (found == a.by_name.end()) throw error(errc::bad_argument, "no stages are offered by the name '" + name + "'");
  const offer_base& o = *found->second;
  if (o.in() != in || o.out() != out)
    throw error(errc::bad_argument, "the stages that are offered as '" + name + "' make " + text_of(o.out()) + " of " +
                                        text_of(o.in()) + ", not " + text_of(out) + " of " + text_of(in));
  return found->second;
}

}  // namespace troupe::detail::streams

namespace troupe::stream {

std::vector<offer_description> offers() {
  using detail::streams::all;
  std::vector<offer_description> described;
  std::lock_guard hold(all().lock);
  for (const auto& [name, o] : all().by_name)
    described.push_back({name, detail::streams::text_of(o->in()), detail::streams::text_of(o->out())});
  return described;
}

}  // namespace troupe::stream
