// What this file is for: keys of hardware, and when something is measured.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/costs/known_costs.hpp"

#include <algorithm>
#include <chrono>

#include <troupe/kernel.hpp>

#include "devices/host/topology.hpp"
#include "devices/rtc/settings.hpp"

namespace troupe::detail {

namespace {

// Factor by which a link must be faster than the kept figure to replace it.
constexpr float faster = 1.5f;

cost_time now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::filesystem::path folder_of(const std::string& where) {
  return where.empty() ? devices::rtc::settings_from_environment().cache : std::filesystem::path(where);
}

std::string on_one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return text;
}

std::string text_of(const devices::accelerator_facts& f) { return f.name + " | " + f.identity + " | " + f.bus; }

}  // namespace

known_costs::known_costs(const std::string& where, int threads)
    : store_(folder_of(where)), table_(store_.read(now())), processor_(on_one_line(devices::processor_name())) {
  hardware_[device_kind::cpu] = {std::to_string(threads) + " x " + processor_};
}

std::optional<devices::link_speeds> known_costs::links_of(devices::accelerator& a, bool measure) {
  const devices::accelerator_facts& f = a.facts();
  hardware_[f.kind].insert(f.identity);
  return known_or(key_of(a), measure, [&] { return devices::measure_links(a); });
}

std::string known_costs::key_of(const devices::accelerator& a) const {
  return on_one_line(text_of(a.facts()) + " | " + processor_);
}

std::optional<devices::link_speeds> known_costs::peers_of(devices::accelerator& a, devices::accelerator& b,
                                                          bool measure) {
  return known_or(text_of(a.facts()) + " <-> " + text_of(b.facts()), measure,
                  [&] { return devices::measure_peers(a, b); });
}

std::optional<devices::link_speeds> known_costs::known_or(const std::string& hardware, bool measure,
                                                          const std::function<devices::link_speeds()>& how) {
  link_cost link;
  link.hardware = on_one_line(hardware);
  if (const link_cost* known = table_.find_link(link.hardware)) return known->speeds;
  if (!measure) return std::nullopt;
  link.speeds = how();
  if (!link.speeds.in.known() || !link.speeds.out.known()) return std::nullopt;
  // Figures from a busy machine are used now, but not kept for later.
  if (link.speeds.in.agreed && link.speeds.out.agreed) keep(link);
  return link.speeds;
}

void known_costs::keep(link_cost link) {
  link.when = now();
  cost_table fresh;
  fresh.links.push_back(link);
  table_.merge(fresh, link.when);
  store_.add(fresh, link.when);
}

// Keeps a learned figure only if it is faster: a slower one may come from a busy machine, and a link that is believed
// to be fast is used, so its real speed is found out.
void known_costs::correct(const std::string& link, const devices::link_speeds& learned) {
  const link_cost* const known = table_.find_link(link);
  const auto is_faster = [](const devices::link_speed& a, const devices::link_speed& b) {
    return a.latency_ns * faster < b.latency_ns || a.bytes_per_ns > faster * b.bytes_per_ns;
  };
  if (known && (is_faster(learned.in, known->speeds.in) || is_faster(learned.out, known->speeds.out)))
    keep({link, 0, learned});
}

std::vector<logic::remembered_time> known_costs::times() const {
  std::map<std::uint64_t, device_kind> kinds;
  for (const auto& [kind, names] : hardware_) kinds.emplace(hardware_of(kind), kind);
  std::vector<logic::remembered_time> all;
  for (const kernel_cost& t : table_.times)
    if (const auto kind = kinds.find(t.hardware); kind != kinds.end())
      all.push_back({t.kernel, static_cast<logic::size_class>(t.size), kind->second, t.ns});
  return all;
}

void known_costs::keep(const std::vector<logic::remembered_time>& measured) const {
  if (measured.empty()) return;
  cost_table fresh;
  const cost_time when = now();
  for (const logic::remembered_time& t : measured)
    if (hardware_.contains(t.kind)) fresh.times.push_back({hardware_of(t.kind), t.kernel, t.size, when, t.ns});
  store_.add(fresh, when);
}

std::uint64_t known_costs::hardware_of(device_kind kind) const {
  std::uint64_t key = hash_of(std::to_string(static_cast<int>(kind)));
  for (const std::string& name : hardware_.at(kind)) key = hash_of("\n", hash_of(name, key));
  return key;
}

}  // namespace troupe::detail
