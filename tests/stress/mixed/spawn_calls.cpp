// What this file is for: spawns closures of every form that plans have.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "handles.hpp"

namespace mixed {

namespace {

template <class To>
any_future with_target(To& to, const handles& h, const call_body& body, const troupe::task_options& how,
                       const access_plan& target, const auto&... before) {
  return with_rank(h.plan_of(target).rank, [&](auto n) {
    return with_action<n>(target.what, h.part<n>(target),
                          [&](const auto& access) -> any_future { return to.spawn(how, body, before..., access); });
  });
}

template <int M, class To>
any_future read_and_target(To& to, const handles& h, const call_body& body, const troupe::task_options& how,
                           const access_plan& source, const access_plan& target) {
  const auto in = h.part<M>(source);
  return with_rank(h.plan_of(target).rank, [&](auto n) -> any_future {
    const auto out = h.part<n>(target);
    switch (target.what) {
      case action::write:
        return to.spawn(how, body, read(in), write(out));
      case action::update:
        return to.spawn(how, body, read(in), update(out));
      default:
        return to.spawn(how, body, read(in), reduce(out));
    }
  });
}

}  // namespace

template <class To>
any_future spawn_call(To& to, const handles& h, const assignment& a, const troupe::task_options& how,
                      const std::vector<const troupe::future<result>*>& futures) {
  const call_body body(a);
  const std::vector<access_plan>& list = a.op->accesses;
  if (futures.size() == 2) return to.spawn(how, body, *futures[0], *futures[1]);
  if (futures.size() == 1) return with_target(to, h, body, how, list[0], *futures[0]);
  switch (list.size()) {
    case 0:
      return to.spawn(how, body);
    case 1:
      return with_target(to, h, body, how, list[0]);
    case 2:
      return with_rank(h.plan_of(list[0]).rank,
                       [&](auto m) { return read_and_target<m>(to, h, body, how, list[0], list[1]); });
    case 3:
      return with_rank(h.plan_of(list[0]).rank, [&](auto n) -> any_future {
        return to.spawn(how, body, read(h.part<n>(list[0])), update(h.part<n>(list[1])), write(h.part<n>(list[2])));
      });
    default:
      return with_rank(h.plan_of(list[0]).rank, [&](auto n) -> any_future {
        return to.spawn(how, body, read(h.part<n>(list[0])), read(h.part<n>(list[1])), read(h.part<n>(list[2])),
                        read(h.part<n>(list[3])), update(h.part<n>(list[4])), write(h.part<n>(list[5])));
      });
  }
}

template any_future spawn_call(troupe::runtime&, const handles&, const assignment&, const troupe::task_options&,
                               const std::vector<const troupe::future<result>*>&);
template any_future spawn_call(troupe::recorder&, const handles&, const assignment&, const troupe::task_options&,
                               const std::vector<const troupe::future<result>*>&);

}  // namespace mixed
