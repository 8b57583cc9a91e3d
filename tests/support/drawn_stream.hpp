// What this file is for: streams of timed events that are drawn at random, with what must come out of them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Beside each flow stand the events that must come out of it, worked out stage by stage by functions that know nothing
// of streams. Sources promise how late their events may come and keep to it, so nothing is late in any window or join,
// and what comes out does not depend on the order in which anything runs.
#pragma once

#include <algorithm>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <ostream>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <troupe/stream.hpp>

namespace test {

namespace st = troupe::stream;

struct event {
  std::int64_t at = 0;  // ns since 1970
  int key = 0;
  std::int64_t value = 0;
  auto operator<=>(const event&) const = default;
  friend std::ostream& operator<<(std::ostream& to, const event& e) {
    return to << e.at << ':' << e.key << ':' << e.value;
  }
};
using events = std::vector<event>;

class drawn_stream {
 public:
  struct part {
    st::flow<event> flow;
    events wanted;
    bool in_order = true;  // they come as in `wanted`
  };

  /// `meanwhile`: called in functions of stages.
  drawn_stream(std::uint64_t seed, std::function<void()> meanwhile) : random_(seed), meanwhile_(std::move(meanwhile)) {}

  int number(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  bool happens(int percent) { return number(1, 100) <= percent; }

  /// A flow and what must come out of it.
  part flow() {
    part p = source();
    for (int n = number(0, 5); n > 0; --n) p = stage(std::move(p));
    return p;
  }

  /// What threads outside have to push, by the name of the input.
  std::map<std::string, events> pushes;
  /// Events that must come to the dead letters.
  std::uint64_t dead = 0;
  /// Stages whose edges may drop; then nothing is known of what comes out.
  bool may_drop = false;
  int edges_that_drop = 0;

 private:
  std::string name(const char* kind) { return kind + std::to_string(++names_); }
  st::edge_options edge() {
    st::edge_options e{.items = static_cast<std::size_t>(number(1, 12)),
                       .bytes = static_cast<std::size_t>(number(1, 300))};
    if (may_drop && happens(30)) {
      e.full = happens(50) ? st::when_full::drop_newest : st::when_full::drop_oldest;
      ++edges_that_drop;
    }
    return e;
  }
  st::stage_options options(bool* keeps_order) {
    st::stage_options o{.edge = edge()};
    if (happens(40)) o.parallel = {happens(50) ? 1 : 2, number(2, 4)};
    if (happens(30)) o.order = st::unordered;
    if (o.parallel.most != 1 && o.order == st::unordered) *keeps_order = false;
    return o;
  }

  part source() {
    events all(static_cast<std::size_t>(happens(10) ? 0 : number(1, 300)));
    const int step = number(0, 20), late = number(0, 30);
    std::int64_t now = number(-1000, 1000), latest = now;
    for (event& e : all) {
      now += number(0, step);
      e = {std::max(now - number(0, late), latest - late), number(0, 6), number(-1000, 1000)};
      latest = std::max(latest, e.at);
    }
    const auto raw = [&]() -> st::flow<event> {
      switch (number(0, 3)) {
        case 0:
          return st::from(name("range"), all);
        case 1:
          return st::from(name("function"), [all, at = std::size_t{0}]() mutable -> std::optional<event> {
            if (at == all.size()) return {};
            return all[at++];
          });
        case 2:
          return st::from(name("coroutine"), [](events from, int pause_us) -> st::source<event> {
            for (std::size_t i = 0; i < from.size(); ++i) {
              if (i % 23 == 13) co_await st::sleep(std::chrono::microseconds(i % 3 == 0 ? 0 : pause_us));
              co_yield from[i];
            }
          }(all, number(1, 3000)));
        default: {
          const std::string at = name("input");
          pushes.emplace(at, all);
          return st::from<event>(at, edge());
        }
      }
    }();
    return {raw | st::event_time(name("time"), &event::at, {.out_of_order = std::chrono::nanoseconds(late)}), all};
  }

  part stage(part p) {
    switch (number(0, 15)) {
      case 0:
      case 1:
        return mapped(std::move(p));
      case 2: {
        const int k = number(2, 5);
        std::erase_if(p.wanted, [k](const event& e) { return e.value % k == 0; });
        return {p.flow | st::filter(name("filter"),
                                    [k, m = meanwhile_](const event& e) {
                                      m();
                                      return e.value % k != 0;
                                    }),
                p.wanted, p.in_order};
      }
      case 3:
        return copied(std::move(p));
      case 4:
        p.flow = p.flow | st::map(name("pass"), [](event e) { return e; }) | st::async(edge());
        return p;
      case 5: {  // a copy to each, brought together again
        auto ways = p.flow | st::tee<2>(name("tee"));
        auto left = happens(50) ? ways[0] | st::async(edge()) : ways[0];
        events both = p.wanted;
        both.insert(both.end(), p.wanted.begin(), p.wanted.end());
        return {st::merge(name("merge"), left, ways[1]), both, false};
      }
      case 6:
        return routed(std::move(p));
      case 7:
        return flaky(std::move(p));
      case 8:
        return windows(std::move(p));
      case 9: {
        part q = source();
        events both = p.wanted;
        both.insert(both.end(), q.wanted.begin(), q.wanted.end());
        return {st::merge(name("merge"), p.flow, q.flow), both, false};
      }
      case 10:
        return joined(std::move(p));
      case 11:
        return processed(std::move(p));
      case 12:
        return batched(std::move(p));
      case 13:
        return zipped(std::move(p));
      case 14:
        std::stable_sort(p.wanted.begin(), p.wanted.end(), [](const event& a, const event& b) { return a.at < b.at; });
        return {p.flow | st::in_time_order(name("sort"), {.items = 1'000'000}), p.wanted, p.in_order};
      default:
        return windows_in_lanes(std::move(p));
    }
  }

  part mapped(part p) {
    const int k = number(1, 3);
    bool keeps_order = true;
    const st::stage_options o = options(&keeps_order);
    for (event& e : p.wanted) e.value += k;
    return {p.flow | st::map(
                         name("map"),
                         [k, m = meanwhile_](event e) {
                           m();
                           e.value += k;
                           return e;
                         },
                         o),
            p.wanted, p.in_order && keeps_order};
  }
  part copied(part p) {
    events out;
    for (const event& e : p.wanted)
      for (int j = 0; j < (e.key & 3); ++j) out.push_back({e.at, e.key, e.value + j});
    return {p.flow | st::flat_map(name("flat_map"),
                                  [m = meanwhile_](const event& e) {
                                    m();
                                    events made;
                                    for (int j = 0; j < (e.key & 3); ++j) made.push_back({e.at, e.key, e.value + j});
                                    return made;
                                  }),
            out, p.in_order};
  }
  part routed(part p) {
    events out;
    for (event e : p.wanted) {
      if ((e.value & 3) == 3) continue;
      if ((e.value & 3) == 1) e.key += 5;
      out.push_back(e);
    }
    auto ways =
        p.flow | st::route<3>(name("route"), [](const event& e) { return static_cast<std::size_t>(e.value & 3); });
    auto other = ways[1] | st::map(name("map"), [](event e) {
                   e.key += 5;
                   return e;
                 });
    return {st::merge(name("merge"), ways[0], happens(50) ? other | st::async(edge()) : other, ways[2]), out, false};
  }
  class attempts {
   public:
    int count(const event& e) {
      const std::lock_guard hold(lock_);
      return ++of_[e];
    }

   private:
    std::mutex lock_;
    std::map<event, int> of_;
  };
  // Some events fail twice, some always.
  part flaky(part p) {
    events out;
    for (const event& e : p.wanted) {
      if (e.value % 11 == 5)
        ++dead;
      else
        out.push_back(e);
    }
    bool keeps_order = true;
    st::stage_options o = options(&keeps_order);
    o.fail = st::retry(number(2, 4), std::chrono::microseconds(happens(50) ? 0 : number(1, 500))).then(st::dead_letter);
    return {p.flow | st::map(
                         name("flaky"),
                         [tried = std::make_shared<attempts>(), m = meanwhile_](const event& e) {
                           m();
                           if (e.value % 11 == 5) throw std::runtime_error("never");
                           if (e.value % 13 == 3 && tried->count(e) <= 2) throw std::runtime_error("not now");
                           return e;
                         },
                         o),
            out, p.in_order && keeps_order};
  }

  // A window's event has the window's last moment, which is the time of what a window passes on, and the sum of what is
  // in it.
  part windows(part p) {
    const int slide = number(1, 60), size = happens(50) ? slide : slide + number(1, 90);
    std::map<std::pair<std::int64_t, int>, std::int64_t> sums;
    for (const event& e : p.wanted) {
      std::int64_t first = (e.at / slide - (e.at % slide < 0)) * slide;
      for (; first > e.at - size; first -= slide) sums[{first, e.key}] += e.value;
    }
    events out;
    for (const auto& [at, sum] : sums) out.push_back({at.first + size - 1, at.second, sum});
    const auto add = [](std::int64_t& s, const event& e) { s += e.value; };
    const auto merge = [](std::int64_t& s, const std::int64_t& other) { s += other; };
    const auto when = st::sliding(std::chrono::nanoseconds(size), std::chrono::nanoseconds(slide));
    const auto told = [m = meanwhile_](const st::windowed<int, std::int64_t>& w) {
      m();
      return event{w.window.end.time_since_epoch().count() - 1, w.key, w.value + w.revision * 1'000'000};
    };
    const auto f = p.flow | st::key_by(&event::key);
    return {happens(50) ? f | st::window(name("panes"), when, {}, st::fold(std::int64_t{0}, add, merge)) |
                              st::map(name("told"), told)
                        : f | st::window(name("window"), when, {}, st::fold(std::int64_t{0}, add)) |
                              st::map(name("told"), told),
            out, false};
  }
  part joined(part p) {
    part q = source();
    for (int n = number(0, 2); n > 0; --n) q = mapped(std::move(q));
    const int before = number(0, 12), after = number(0, 12);
    events out;
    for (const event& a : p.wanted)
      for (const event& b : q.wanted)
        if (a.key == b.key && b.at >= a.at - before && b.at <= a.at + after)
          out.push_back({std::max(a.at, b.at), a.key, (a.value + b.value) % 1000});
    if (out.size() > 4000) return {st::merge(name("merge"), p.flow, q.flow), both(p, q), false};
    return {st::join(name("join"), p.flow | st::key_by(&event::key), q.flow | st::key_by(&event::key),
                     st::within(std::chrono::nanoseconds(before), std::chrono::nanoseconds(after)),
                     [m = meanwhile_](const event& a, const event& b) {
                       m();
                       return event{std::max(a.at, b.at), a.key, (a.value + b.value) % 1000};
                     },
                     {.ahead = static_cast<std::size_t>(happens(50) ? number(1, 20) : 1000)}),
            out, false};
  }
  // Behind stages that keep no times: all are in time.
  st::flow<event> timed_again(const st::flow<event>& f) {
    return f | st::event_time(name("time"), &event::at, {.out_of_order = std::chrono::hours(1)});
  }
  part batched(part p) {
    const st::batch_options o{.items = static_cast<std::size_t>(number(1, 20)),
                              .delay = std::chrono::microseconds(number(0, 1) * number(1, 900))};
    p.flow = timed_again(p.flow | st::batch(name("batch"), o) | st::unbatch(name("unbatch")));
    return p;
  }
  part zipped(part p) {
    // What the longer one has left is left out.
    if (!p.in_order) return mapped(std::move(p));
    const part q = source();
    events out;
    for (std::size_t i = 0; i < std::min(p.wanted.size(), q.wanted.size()); ++i)
      out.push_back({p.wanted[i].at, q.wanted[i].key, p.wanted[i].value});
    return {timed_again(st::zip(name("zip"), p.flow, q.flow) |
                        st::map(name("pair"),
                                [m = meanwhile_](const std::pair<event, event>& e) {
                                  m();
                                  return event{e.first.at, e.second.key, e.first.value};
                                })),
            out, true};
  }
  part windows_in_lanes(part p) {
    const int size = number(1, 60), lanes = number(1, 4);
    const std::string window = name("window"), told = name("told");
    std::map<std::pair<std::int64_t, int>, std::int64_t> counts;
    for (const event& e : p.wanted) ++counts[{(e.at / size - (e.at % size < 0)) * size, e.key}];
    events out;
    for (const auto& [at, count] : counts) out.push_back({at.first + size - 1, at.second, count});
    return {p.flow | st::by_key(
                         name("lanes"), lanes, &event::key,
                         [size, window, told, m = meanwhile_](const st::flow<event>& f) {
                           return f | st::key_by(&event::key) |
                                  st::window(window, st::tumbling(std::chrono::nanoseconds(size)), {}, st::count()) |
                                  st::map(told, [m](const st::windowed<int, std::uint64_t>& w) {
                                    m();
                                    return event{w.window.end.time_since_epoch().count() - 1, w.key,
                                                 static_cast<std::int64_t>(w.value)};
                                  });
                         },
                         edge()),
            out, false};
  }
  static events both(const part& p, const part& q) {
    events all = p.wanted;
    all.insert(all.end(), q.wanted.begin(), q.wanted.end());
    return all;
  }
  // A count by key, told at the end, when the time that each event moves on has come.
  part processed(part p) {
    std::map<int, std::int64_t> sums;
    for (const event& e : p.wanted) sums[e.key] += e.value;
    events out;
    for (const auto& [key, sum] : sums) out.push_back({whole, key, sum});
    return {p.flow | st::key_by(&event::key) |
                st::process<event>(
                    name("process"), std::int64_t{0},
                    [m = meanwhile_](auto& c, std::int64_t& sum, const event& e) {
                      m();
                      sum += e.value;
                      c.wake_at(st::event_point(std::chrono::nanoseconds(whole)));
                    },
                    [](auto& c, std::int64_t& sum) {
                      c.emit(event{whole, c.key(), sum});
                    }),
            out, false};
  }
  static constexpr std::int64_t whole = 1'000'000'000;

  std::mt19937_64 random_;
  const std::function<void()> meanwhile_;
  int names_ = 0;
};

}  // namespace test
