// What this file is for: tasks within tasks, and bodies that misbehave on purpose.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "bodies.hpp"

#include <signal.h>

#include <condition_variable>
#include <mutex>

namespace mixed {

namespace {

void change_all(action what, const troupe::view<word, 1>& v, word h) {
  for (troupe::index_t i = v.lo(0); i < v.hi(0); ++i) v.at(i) = changed(what, v.at(i), h, {i, 0, 0, 0});
}

word with_scratch(session& s, word h) {
  troupe::runtime& rt = s.runtime();
  auto a = rt.array<word>({scratch_size}, troupe::tiles(scratch_tile), "scratch");
  rt.for_each(
      troupe::grid(scratch_size), [h](troupe::view<word, 1> v) { change_all(action::write, v, h); },
      troupe::write(a));
  rt.spawn([h](troupe::view<word, 1> v) { change_all(action::update, v, h + 1); }, troupe::update(a));
  rt.for_each(
      troupe::grid(scratch_size), [h](troupe::view<word, 1> v) { change_all(action::update, v, h + 2); },
      troupe::update(a));
  const auto seen = a.read();
  word all = h;
  for (troupe::index_t i = 0; i < scratch_size; ++i) all = mix(all, seen.at(i));
  return all;
}

}  // namespace

word nested_work(session& s, const nesting& n, word salt, int depth) {
  s.progress();
  if (depth == 0) return mix(salt, 7);
  troupe::runtime& rt = s.runtime();
  const auto child = [&s, &n, depth, mark = counted(s)](word below_salt) {
    return [&s, &n, depth, below_salt, mark] { return nested_work(s, n, below_salt, depth - 1); };
  };
  std::vector<troupe::future<word>> children;
  for (int i = 0; i < n.width; ++i) {
    const word below_salt = mix(salt, static_cast<word>(i));
    troupe::future<word> f = rt.spawn(child(below_salt));
    if (n.what == nesting::kind::continuation) f = f.then([](word v) { return mix(v, 3); });
    if (n.what == nesting::kind::chain) f = rt.spawn([](word v) { return v; }, f);
    children.push_back(std::move(f));
  }
  word h = salt;
  for (troupe::future<word>& f : children)
    h = mix(h, n.what == nesting::kind::yield ? troupe::yield_core([&] { return f.get(); }) : f.get());
  if (n.what == nesting::kind::scratch) h = with_scratch(s, h);
  return h;
}

void misbehave(const assignment& a) {
  if (a.all->fault() == planted::nothing || a.number != call_body::planted_at(a)) return;
  if (a.all->fault() == planted::hang) {
    std::mutex lock;
    std::condition_variable never;
    std::unique_lock hold(lock);
    for (;;) never.wait(hold);
  }
  if (a.all->fault() == planted::greed) {
    a.all->take({{"licence", a.all->about().licences + 1}}, {});
    a.all->give({{"licence", a.all->about().licences + 1}}, {});
  }
  if (a.all->fault() == planted::leak) new counted(*a.all);
  if (a.all->fault() == planted::crash) ::raise(SIGSEGV);
}

}  // namespace mixed
