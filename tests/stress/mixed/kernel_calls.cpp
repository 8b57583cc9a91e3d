// What this file is for: calls of kernels, spawned or over an index space.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "handles.hpp"

namespace mixed {

namespace {

template <int N, class To>
any_future stir(To& to, const handles& h, const operation& op, const troupe::task_options& how) {
  const auto a = h.part<N>(op.accesses[0]);
  if (op.space_rank == 0) return to.spawn(how, stir_kernel<N>, update(a), op.salt);
  return to.for_each(how, space_of<N>(op), stir_kernel<N>, update(a), op.salt);
}

template <int N, class To>
any_future stencil(To& to, const handles& h, const operation& op, const troupe::task_options& how) {
  const access_plan& source = op.accesses[0];
  const auto from = h.part<N>(source), into = h.part<N>(op.accesses[1]);
  reach r{};
  for (std::size_t d = 0; d < 4; ++d) r.along[d] = source.map.radius[d];
  if (op.space_rank == 0) return to.spawn(how, stencil_kernel<N>, read(from), write(into), r, op.salt);
  return to.for_each(how, space_of<N>(op), stencil_kernel<N>, read(from, mapper<N>(source.map)),
                     write(into, troupe::one_to_one()), r, op.salt);
}

template <int N, class To>
any_future fold(To& to, const handles& h, const operation& op, const troupe::task_options& how) {
  const auto from = h.part<N>(op.accesses[0]);
  const auto bins = h.part<1>(op.accesses[1]);
  if (op.space_rank == 0) return to.spawn(how, fold_kernel<N>, read(from), reduce(bins), op.salt);
  return to.for_each(how, space_of<N>(op), fold_kernel<N>, read(from, troupe::one_to_one()), reduce(bins), op.salt);
}

}  // namespace

template <class To>
any_future kernel_call(To& to, const handles& h, const assignment& a, const troupe::task_options& how) {
  const operation& op = *a.op;
  return with_rank(h.plan_of(op.accesses[0]).rank, [&](auto n) {
    switch (op.what) {
      case operation::kind::stir:
        return stir<n>(to, h, op, how);
      case operation::kind::stencil:
        return stencil<n>(to, h, op, how);
      default:
        return fold<n>(to, h, op, how);
    }
  });
}

template any_future kernel_call(troupe::runtime&, const handles&, const assignment&, const troupe::task_options&);
template any_future kernel_call(troupe::recorder&, const handles&, const assignment&, const troupe::task_options&);

}  // namespace mixed
