// What this file is for: writing and reading the lines.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/costs/cost_file.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <tuple>

#include <troupe/kernel.hpp>

namespace troupe::detail {

namespace {

constexpr std::string_view title = "troupe costs 1 ";

template <class T>
void put(std::string& to, T value, int base) {
  char text[32];
  to.append(text, std::to_chars(text, text + sizeof text, value, base).ptr);
}
void put(std::string& to, float value) {
  char text[32];  // the shortest that reads back as the same, in any locale
  to.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

// Takes fields off a line; after one wrong field good() stays false.
class fields {
 public:
  explicit fields(std::string_view line) : rest_(line) {}

  std::string_view word() {
    const auto end = std::min(rest_.find(' '), rest_.size());
    const auto w = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return w;
  }
  template <class T>
  T number(int base) {
    const auto w = word();
    T value{};
    const auto [stopped, wrong] = std::from_chars(w.data(), w.data() + w.size(), value, base);
    good_ = good_ && wrong == std::errc() && stopped == w.data() + w.size();
    return value;
  }
  // Takes a positive, finite number, as every measurement is.
  float measured() {
    const auto w = word();
    float value = 0;
    const auto [stopped, wrong] = std::from_chars(w.data(), w.data() + w.size(), value);
    good_ = good_ && wrong == std::errc() && stopped == w.data() + w.size() && std::isfinite(value) && value > 0;
    return value;
  }
  std::string_view rest() const { return rest_; }
  bool good() const { return good_; }

 private:
  std::string_view rest_;
  bool good_ = true;
};

bool read_line(std::string_view line, cost_table& to) {
  fields f(line);
  const auto what = f.word();
  if (what == "link") {
    link_cost l;
    l.when = f.number<cost_time>(10);
    for (devices::link_speed* s : {&l.speeds.in, &l.speeds.out}) {
      s->latency_ns = f.measured();
      s->bytes_per_ns = f.measured();
    }
    l.hardware = f.rest();
    to.links.push_back(std::move(l));
    return f.good() && !to.links.back().hardware.empty();
  }
  if (what != "time") return false;
  kernel_cost t;
  t.when = f.number<cost_time>(10);
  t.hardware = f.number<std::uint64_t>(16);
  t.kernel = f.number<std::uint64_t>(16);
  t.size = f.number<unsigned>(10);
  t.ns = f.measured();
  to.times.push_back(t);
  return f.good() && t.size <= 64 && f.rest().empty();
}

template <class Entry, class Key>
void merge_entries(std::vector<Entry>& into, const std::vector<Entry>& newer, std::size_t most, cost_time now,
                   Key&& key_of) {
  std::map<decltype(key_of(into.front())), Entry> all;
  for (const auto* some : {static_cast<const std::vector<Entry>*>(&into), &newer})
    for (const Entry& e : *some)
      // An entry that claims to be from the future would never expire.
      if (e.when <= now && now - e.when <= cost_table::seconds_max) all.insert_or_assign(key_of(e), e);
  into.clear();
  for (auto& [key, e] : all) into.push_back(std::move(e));
  if (into.size() <= most) return;
  std::nth_element(into.begin(), into.begin() + static_cast<std::ptrdiff_t>(most), into.end(),
                   [](const Entry& a, const Entry& b) { return a.when > b.when; });
  into.resize(most);
}

}  // namespace

void cost_table::merge(const cost_table& newer, cost_time now) {
  merge_entries(links, newer.links, links_max, now, [](const link_cost& l) { return l.hardware; });
  merge_entries(times, newer.times, times_max, now,
                [](const kernel_cost& t) { return std::tuple(t.hardware, t.kernel, t.size); });
}

const link_cost* cost_table::find_link(std::string_view hardware) const {
  const auto at = std::find_if(links.begin(), links.end(), [&](const link_cost& l) { return l.hardware == hardware; });
  return at == links.end() ? nullptr : &*at;
}

std::string text_of(const cost_table& c) {
  std::string lines;
  for (const link_cost& l : c.links) {
    lines += "link ";
    put(lines, l.when, 10);
    for (const devices::link_speed& s : {l.speeds.in, l.speeds.out}) {
      put(lines += ' ', s.latency_ns);
      put(lines += ' ', s.bytes_per_ns);
    }
    lines += ' ' + l.hardware + '\n';
  }
  for (const kernel_cost& t : c.times) {
    lines += "time ";
    put(lines, t.when, 10);
    put(lines += ' ', t.hardware, 16);
    put(lines += ' ', t.kernel, 16);
    put(lines += ' ', t.size, 10);
    put(lines += ' ', t.ns);
    lines += '\n';
  }
  std::string text(title);
  put(text, lines.size(), 10);
  put(text += ' ', hash_of(lines), 16);
  return text + '\n' + lines;
}

std::optional<cost_table> parse_costs(std::string_view text) {
  if (!text.starts_with(title)) return std::nullopt;
  const auto end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  fields head(text.substr(title.size(), end - title.size()));
  const auto bytes = head.number<std::size_t>(10);
  const auto sum = head.number<std::uint64_t>(16);
  text.remove_prefix(end + 1);
  if (!head.good() || !head.rest().empty() || text.size() != bytes || hash_of(text) != sum) return std::nullopt;
  cost_table c;
  while (!text.empty()) {
    const auto line = text.find('\n');
    if (line == std::string_view::npos || !read_line(text.substr(0, line), c)) return std::nullopt;
    text.remove_prefix(line + 1);
  }
  return c;
}

}  // namespace troupe::detail
