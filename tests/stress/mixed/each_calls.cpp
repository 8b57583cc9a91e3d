// What this file is for: for_each of closures, with every mapper.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "handles.hpp"

namespace mixed {

namespace {

// Calls f with the access to the target: without a mapper, with one of the library's, or with one of our own.
template <int N, class F>
any_future with_mapped_target(const access_plan& target, const array_of<N>& out, const F& f) {
  const bool writes = target.what == action::write;
  switch (target.map.what) {
    case mapping::kind::none:
      return writes ? f(write(out)) : f(update(out));
    case mapping::kind::one_to_one:
      return writes ? f(write(out, troupe::one_to_one())) : f(update(out, mapper<N>(target.map)));
    default:
      return writes ? f(write(out, mapper<N>(target.map))) : f(update(out, mapper<N>(target.map)));
  }
}

template <int N, class To>
any_future map(To& to, const handles& h, const assignment& a, const troupe::task_options& how) {
  const operation& op = *a.op;
  const troupe::index_space<N> space = space_of<N>(op);
  const each_body body(a);
  const access_plan& target = op.accesses.back();
  const array_of<N> out = h.part<N>(target);
  if (op.accesses.size() == 1)
    return with_mapped_target<N>(target, out,
                                 [&](const auto& t) -> any_future { return to.for_each(how, space, body, t); });
  const access_plan& source = op.accesses[0];
  if (source.map.what == mapping::kind::none)
    return with_mapped_target<N>(target, out, [&](const auto& t) -> any_future {
      return to.for_each(how, space, body, read(h.part<N>(source)), t);
    });
  return with_rank(h.plan_of(source).rank, [&](auto m) {
    return with_mapped_target<N>(target, out, [&](const auto& t) -> any_future {
      return to.for_each(how, space, body, read(h.part<m>(source), mapper<m>(source.map)), t);
    });
  });
}

template <int N, class To>
any_future sweep(To& to, const handles& h, const assignment& a, const troupe::task_options& how) {
  const std::vector<access_plan>& list = a.op->accesses;
  return to.for_each(how, space_of<N>(*a.op), sweep_body(a), read(h.part<N>(list[0]), troupe::one_to_one()),
                     update(h.part<N>(list[1]), troupe::all()));
}

template <int N, class To>
any_future scatter(To& to, const handles& h, const assignment& a, const troupe::task_options& how) {
  const std::vector<access_plan>& list = a.op->accesses;
  const auto in = h.part<N>(list[0]);
  const auto bins = h.part<1>(list[1]);
  const auto space = space_of<N>(*a.op);
  const scatter_body body(a);
  if (list[1].what == action::add) return to.for_each(how, space, body, read(in), reduce(bins));
  return to.for_each(how, space, body, read(in, troupe::one_to_one()), reduce(bins, std::bit_xor<>(), word{0}));
}

}  // namespace

template <class To>
any_future each_call(To& to, const handles& h, const assignment& a, const troupe::task_options& how) {
  return with_rank(a.op->space_rank, [&](auto n) {
    switch (a.op->what) {
      case operation::kind::sweep:
        return sweep<n>(to, h, a, how);
      case operation::kind::scatter:
        return scatter<n>(to, h, a, how);
      default:
        return map<n>(to, h, a, how);
    }
  });
}

template any_future each_call(troupe::runtime&, const handles&, const assignment&, const troupe::task_options&);
template any_future each_call(troupe::recorder&, const handles&, const assignment&, const troupe::task_options&);

}  // namespace mixed
