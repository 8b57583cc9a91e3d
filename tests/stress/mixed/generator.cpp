// What this file is for: draws the operations of a client, every one of them allowed and its outcome known before.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Rules that keep programs within what the library promises:
// - While a client holds a host view it calls nothing that waits; it holds none where few tasks may be in flight. To
//   drop the last handle of borrowed memory is to wait.
// - Under a budget of memory, bodies that wait hold no arrays, since what they wait for may need the room.
// - Tasks that fail for good, or may be cancelled, change fragile arrays only; what reads those changes only those.
#include "generator.hpp"

#include <algorithm>

namespace mixed {

namespace {

using kind = operation::kind;

bool has_value(const operation& op) {
  return op.what == kind::call || op.what == kind::then || op.what == kind::await_two;
}

}  // namespace

array_plan generator::draw_array(chance& draw, bool fragile, bool large, bool may_borrow) {
  array_plan a;
  a.rank = static_cast<int>(draw.from(1, 4));
  a.fragile = fragile;
  a.salt = draw.word();
  index left = large ? draw.from(66'000, 140'000) : draw.one_in(4) ? draw.from(1, 64) : draw.from(64, 3000);
  for (int d = 0; d < a.rank; ++d) {
    const auto at = static_cast<std::size_t>(d);
    const int more = a.rank - d;
    index most = left;
    if (more > 1) {  // about the root, so that all dimensions get some
      most = 1;
      while (power(most + 1, more) <= left) ++most;
      most = std::min<index>(left, most * 2);
    }
    a.size[at] = more == 1 ? std::max<index>(1, left) : draw.from(1, std::max<index>(1, most));
    left = std::max<index>(1, left / a.size[at]);
  }
  // At most so many tiles.
  const index tiles_max = draw.one_in(8) ? 200 : 24;
  for (std::size_t d = 0; d < 4; ++d)
    a.tile[d] = draw.one_in(3) ? a.size[d] + draw.from(0, 2) : draw.from(1, a.size[d]);
  for (std::size_t d = 0; count_of(a.size, a.tile) > tiles_max; d = (d + 1) % 4)
    a.tile[d] = std::min(a.size[d], a.tile[d] * 2);
  switch (draw.from(0, 5)) {
    case 0:
    case 1:
      a.from = array_plan::origin::allocated;
      break;
    case 2:
      a.from = array_plan::origin::adopted;
      break;
    case 3:
      a.from = may_borrow ? array_plan::origin::borrowed : array_plan::origin::adopted;
      break;
    default:
      a.from = array_plan::origin::filled;
  }
  return a;
}

generator::generator(const plan& p, const std::set<std::string>& without, std::uint64_t seed, int devices)
    : plan_(p), without_(without), draw_(seed), devices_(devices) {}

client_plan generator::client(int operations) {
  client_plan c;
  const int count = static_cast<int>(draw_.from(2, 7));
  for (int i = 0; i < count; ++i) {
    const bool fragile = with("failures") && i > 0 && draw_.one_in(4);
    c.arrays.push_back(draw_array(draw_, fragile, with("large") && draw_.one_in(40), with("borrow")));
  }
  arrays_ = c.arrays;
  in_graph_.assign(arrays_.size(), false);
  for (int i = 0; i < count; ++i)
    if (arrays_[static_cast<std::size_t>(i)].from == array_plan::origin::allocated) put(contents_for(i));
  if (with("graphs"))
    for (int i = static_cast<int>(draw_.from(0, 2)); i > 0; --i) c.graphs.push_back(graph());
  graphs_ = static_cast<int>(c.graphs.size());
  while (static_cast<int>(operations_.size()) < operations) step();
  while (!open_.empty()) close();
  // The end: two changes of each array, in an order that shows.
  for (int i = 0; i < count; ++i)
    for (int k = 0; k < 2; ++k) {
      operation op = changing(i, k == 0 ? action::write : action::update, true);
      op.keep = true;
      if (arrays_[static_cast<std::size_t>(i)].fragile && k == 1 && draw_.one_in(2))
        op.accesses[0].what = action::write;
      put(op);
    }
  c.operations = std::move(operations_);
  return c;
}

// ---- one step -------------------------------------------------------------------------------------------------------

void generator::put(operation op) { operations_.push_back(std::move(op)); }

void generator::step() {
  const bool holding = !open_.empty();
  if (holding && draw_.one_in(6)) return close();
  switch (draw_.from(0, 27)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
      return put(call());
    case 6:
    case 7:
    case 8:
      return put(each());
    case 9:
      return put(with("sweeps") ? sweep() : call());
    case 10:
      return put(with("reductions") ? scatter() : call());
    case 11:
    case 12:
      return put(with("kernels") ? stir() : call());
    case 13:
    case 14:
      return put(with("kernels") ? stencil() : each());
    case 15:
      return put(with("kernels") && with("reductions") ? fold() : call());
    case 16:
    case 17:
      if (!holding) return put(host());
      return put(try_read());
    case 18:
      if (!holding && draw_.one_in(3) && plan_.tasks_in_flight_max > 60000 && with("hold")) return open();
      return put(try_read());
    case 19:
      if (graphs_ > 0) {
        operation op;
        op.what = kind::run;
        op.graph = static_cast<int>(draw_.from(0, graphs_ - 1));
        op.priority = static_cast<int>(draw_.from(-2, 2));
        op.keep = draw_.one_in(2);
        return put(op);
      }
      return put(call());
    case 20:
    case 21:
      return put(from_future(with("continuations") && !draw_.one_in(4) ? kind::then : kind::await_two));
    case 22:
      return holding ? put(call()) : put(from_future(kind::wait));
    case 23:
      return put(from_future(draw_.one_in(2) ? kind::wait_briefly : kind::drop_future));
    case 24: {
      operation op;
      op.what = !holding && with("wait_all") && draw_.one_in(4) ? kind::wait_all : kind::look;
      op.patience_us = static_cast<int>(draw_.from(0, 20'000));
      return put(op);
    }
    case 25:
      return draw_.one_in(3) && with("renewal") ? renew() : put(call());
    case 26:
      return put(with("mistakes") && draw_.one_in(3) ? wrong() : call());
    default:
      return put(with("reductions") ? count() : call());
  }
}

operation generator::start(kind k) {
  operation op;
  op.what = k;
  op.salt = draw_.word();
  op.keep = draw_.one_in(2);
  if (draw_.one_in(3)) op.priority = static_cast<int>(draw_.from(-5, 100));
  return op;
}

void generator::place(operation& op, bool kernel) {
  if (op.amounts.empty() && draw_.one_in(3)) {
    switch (draw_.from(0, kernel && devices_ > 0 && gpu_scope_ ? 6 : 3)) {
      case 0:
        op.where = "cpu";
        break;
      case 1:
        op.where = "cpu:" + std::to_string(draw_.from(0, plan_.core_groups - 1));
        break;
      case 2:
        op.where = "cpu:" + std::to_string(draw_.from(0, plan_.core_groups - 1)) + "|cpu:" +
                   std::to_string(draw_.from(0, plan_.core_groups - 1));
        break;
      case 3:
        op.where = "here";
        break;
      default:
        op.where = "gpu";
    }
  }
}

void generator::burden(operation& op) {
  if (!draw_.one_in(5)) return;
  const int group = (plan_.threads + plan_.core_groups - 1) / plan_.core_groups;
  switch (draw_.from(0, 4)) {
    case 0:
      if (with("cpu_zero")) op.amounts.push_back({"cpu", 0});
      break;
    case 1:
      if (with("cpu_many")) op.amounts.push_back({"cpu", static_cast<int>(draw_.from(1, group))});
      break;
    case 2:
      if (with("gpu_held") && devices_ > 0) op.amounts.push_back({"gpu", static_cast<int>(draw_.from(1, devices_))});
      break;
    default:
      break;
  }
  if (with("named") && draw_.one_in(2))
    op.amounts.push_back({"licence", static_cast<int>(draw_.from(1, plan_.licences))});
  if (with("named") && draw_.one_in(3)) op.amounts.push_back({"token", static_cast<int>(draw_.from(1, plan_.tokens))});
}

void generator::nest(operation& op, bool arrays) {
  if (!with("nested") || !draw_.one_in(6)) return;
  if (plan_.memory_bytes != 0 && arrays) return;
  op.inner.what = static_cast<nesting::kind>(draw_.from(1, 5));
  op.inner.depth = draw_.one_in(3) ? 2 : 1;
  op.inner.width = static_cast<int>(draw_.from(1, 3));
  if (op.inner.what == nesting::kind::scratch && plan_.memory_bytes != 0) op.inner.what = nesting::kind::children;
}

// ---- what is touched ------------------------------------------------------------------------------------------------

int generator::any_array(int rank, bool fragile) {
  std::vector<int> fits;
  for (std::size_t i = 0; i < arrays_.size(); ++i)
    if ((rank == 0 || arrays_[i].rank == rank) && arrays_[i].fragile == fragile) fits.push_back(static_cast<int>(i));
  if (fits.empty()) return -1;
  return fits[static_cast<std::size_t>(draw_.from(0, static_cast<index>(fits.size()) - 1))];
}

// Tasks on fragile arrays may read any array.
int generator::any_source(int rank, bool fragile) {
  if (!fragile) return any_array(rank, false);
  const int a = any_array(rank, draw_.one_in(2));
  return a >= 0 ? a : any_array(rank, true);
}

area generator::any_part(const array_plan& a) {
  area part = a.whole();
  if (draw_.one_in(2)) return part;
  const bool tile = draw_.one_in(3);
  for (std::size_t d = 0; d < 4; ++d) {
    if (draw_.one_in(4)) continue;
    part.lo[d] = draw_.from(0, a.size[d] - 1);
    part.hi[d] = draw_.from(part.lo[d] + 1, a.size[d]);
    if (tile) {
      part.lo[d] = part.lo[d] / a.tile[d] * a.tile[d];
      part.hi[d] = std::min(part.lo[d] + a.tile[d], a.size[d]);
    }
  }
  return part;
}

access_plan generator::access_of(int array, action what) {
  access_plan a;
  a.array = array;
  a.what = what;
  a.part = any_part(arrays_[static_cast<std::size_t>(array)]);
  return a;
}

bool generator::clashes(const std::vector<access_plan>& so_far, const access_plan& a) {
  return std::any_of(so_far.begin(), so_far.end(), [&](const access_plan& b) {
    return a.array == b.array && a.part.meets(b.part) && (a.what != action::read || b.what != action::read);
  });
}

// ---- closures -------------------------------------------------------------------------------------------------------

// The forms of a call: nothing; one array; an input and a target; reads of one rank, a target of any; two inputs of one
// rank and two targets of that rank; six accesses of one rank.
operation generator::call() {
  operation op = start(kind::call);
  const int form = static_cast<int>(draw_.from(0, 9));
  const bool fragile = with("failures") && draw_.one_in(4);
  const int first = form == 0 ? -1 : any_array(0, fragile);
  std::vector<action> list;
  if (first >= 0) {
    const action changes[] = {action::write, action::update,       action::update,
                              action::add,   action::exclusive_or, action::maximum};
    action target = changes[draw_.from(0, 5)];
    if (is_reduction(target) && (fragile || !with("reductions"))) target = action::update;
    if (form <= 3) {
      list = {draw_.one_in(4) ? action::read : target};
    } else if (form <= 7) {
      if (target == action::exclusive_or || target == action::maximum) target = action::add;
      list = {action::read, target};
    } else if (form == 8) {
      list = {action::read, action::update, action::write};
    } else {
      list = {action::read, action::read, action::read, action::read, action::update, action::write};
    }
  }
  const int rank = first >= 0 ? arrays_[static_cast<std::size_t>(first)].rank : 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const bool last = i + 1 == list.size();
    const bool free_rank = list.size() == 2 && !last;
    int array = last                      ? first
                : list[i] == action::read ? any_source(free_rank ? 0 : rank, fragile)
                                          : any_array(rank, fragile);
    if (array < 0) array = first;
    access_plan a = access_of(array, list[i]);
    for (int tries = 0; clashes(op.accesses, a) && tries < 20; ++tries) a = access_of(array, list[i]);
    if (clashes(op.accesses, a)) {  // no room for all of them: one will do
      op.accesses = {access_of(first, action::update)};
      break;
    }
    op.accesses.push_back(a);
  }
  if (op.accesses.size() <= 1 && draw_.one_in(4)) {
    const std::vector<int> from = values();
    const int count = op.accesses.empty() ? 2 : 1;
    for (int i = 0; i < count && !from.empty(); ++i)
      op.futures.push_back(from[static_cast<std::size_t>(draw_.from(0, static_cast<index>(from.size()) - 1))]);
    if (static_cast<int>(op.futures.size()) != count) op.futures.clear();
  }
  // A value may be that of a task that fails.
  if (!op.futures.empty() && !fragile && !op.accesses.empty()) op.futures.clear();
  burden(op);
  place(op, false);
  nest(op, !op.accesses.empty());
  if (draw_.one_in(8) && with("retries")) op.throws = op.retries = static_cast<int>(draw_.from(1, 3));
  const bool changes_fragile = fragile && !op.accesses.empty() && op.accesses.back().what != action::read;
  if (with("failures") && (op.accesses.empty() || changes_fragile) && draw_.one_in(6)) {
    op.throws = op.retries + 1;
    op.inner = {};
  } else if (with("cancelling") && (op.accesses.empty() || changes_fragile) && draw_.one_in(6)) {
    const bool may_wait = open_.empty() && plan_.tasks_in_flight_max > 60000;
    op.stopping = static_cast<operation::stop>(draw_.from(1, may_wait ? 3 : 1));
    op.retries = op.throws = 0;
    op.inner = {};
    op.keep = true;
  }
  return op;
}

std::vector<int> generator::values() const {
  std::vector<int> list;
  for (std::size_t i = operations_.size() > 40 ? operations_.size() - 40 : 0; i < operations_.size(); ++i)
    if (operations_[i].keep && has_value(operations_[i]) && operations_[i].what != kind::await_two &&
        operations_[i].stopping == operation::stop::never && !dropped_.contains(static_cast<int>(i)))
      list.push_back(static_cast<int>(i));
  return list;
}

mapping generator::any_mapping(const access_plan& source, const access_plan& target, int source_rank, int target_rank,
                               bool wraps) {
  mapping m;
  const point size = source.size();
  const bool same = source_rank == target_rank && size == target.size();
  const auto drawn = draw_.from(0, 7);
  if (same && drawn == 0) {
    m.what = mapping::kind::none;
  } else if (same && drawn == 1) {
    m.what = mapping::kind::one_to_one;
  } else if (same && drawn == 2) {
    m.what = mapping::kind::mirror;
    m.dim = static_cast<int>(draw_.from(0, source_rank - 1));
  } else if (same && (drawn == 3 || drawn == 4 || drawn == 5) && with("windows")) {
    m.what = mapping::kind::window;
    for (std::size_t d = 0; d < static_cast<std::size_t>(source_rank); ++d)
      m.radius[d] = draw_.from(0, std::min<index>(draw_.one_in(5) ? 9 : 2, size[d]));
    m.border = static_cast<edge>(draw_.from(0, 3));
    if (m.border == edge::wrap && !wraps) m.border = edge::clamp;
    m.constant = draw_.word();
  } else if (same && drawn == 6) {
    m.what = mapping::kind::slice;
    m.dim = static_cast<int>(draw_.from(0, source_rank - 1));
  } else if (drawn <= 3) {
    m.what = mapping::kind::project;
  } else if (drawn <= 5) {
    m.what = mapping::kind::fixed;
    for (std::size_t d = 0; d < 4; ++d) {
      m.where.lo[d] = draw_.from(0, size[d] - 1);
      m.where.hi[d] = draw_.from(m.where.lo[d] + 1, size[d]);
    }
  } else {
    m.what = mapping::kind::all;
  }
  return m;
}

void generator::cut(operation& op, const point& size, int rank, bool must, index chunks_max) {
  op.space_rank = rank;
  op.space = size;
  op.chunk = {0, 0, 0, 0};
  if (!must && draw_.one_in(2)) return;
  for (std::size_t d = 0; d < 4; ++d) op.chunk[d] = draw_.from(1, size[d]);
  for (std::size_t d = 0; count_of(size, op.chunk) > chunks_max; d = (d + 1) % 4)
    op.chunk[d] = std::min(size[d], op.chunk[d] * 2);
}

operation generator::each() {
  operation op = start(kind::each);
  const bool fragile = with("failures") && draw_.one_in(5);
  int to = any_array(0, fragile);
  if (to < 0) to = any_array(0, false);
  const array_plan& target_array = arrays_[static_cast<std::size_t>(to)];
  access_plan target = access_of(to, draw_.one_in(2) ? action::write : action::update);
  const auto how = draw_.from(0, 5);
  target.map.what = how < 3 ? mapping::kind::none : how < 5 ? mapping::kind::one_to_one : mapping::kind::mirror;
  if (target.map.what == mapping::kind::mirror) target.map.dim = static_cast<int>(draw_.from(0, target_array.rank - 1));
  const int from = draw_.one_in(4) ? -1 : any_source(0, target_array.fragile);
  if (from >= 0) {
    access_plan source = access_of(from, action::read);
    if (arrays_[static_cast<std::size_t>(from)].rank == target_array.rank && draw_.one_in(2)) {
      // As large as the target, where there is room.
      area part;
      bool fits = true;
      for (std::size_t d = 0; d < 4; ++d) {
        const index room = arrays_[static_cast<std::size_t>(from)].size[d] - target.part.size(d);
        fits = fits && room >= 0;
        if (room < 0) continue;
        part.lo[d] = draw_.from(0, room);
        part.hi[d] = part.lo[d] + target.part.size(d);
      }
      if (fits) source.part = part;
    }
    source.map = any_mapping(source, target, arrays_[static_cast<std::size_t>(from)].rank, target_array.rank,
                             !target_array.fragile);
    if (!clashes({source}, target)) op.accesses.push_back(source);
  }
  op.accesses.push_back(target);
  cut(op, target.size(), target_array.rank, target_array.fragile, 40);
  if (draw_.one_in(6)) burden(op);
  place(op, false);
  if (draw_.one_in(6) && with("retries")) op.throws = op.retries = static_cast<int>(draw_.from(1, 2));
  if (target_array.fragile && draw_.one_in(5)) op.throws = op.retries + 1;
  if (op.throws == 0) nest(op, true);
  if (op.inner.what != nesting::kind::none) op.inner = {op.inner.what, 1, 1};
  return op;
}

operation generator::sweep() {
  operation op = start(kind::sweep);
  const int from = any_array(0, false);
  const int rank = arrays_[static_cast<std::size_t>(from)].rank;
  access_plan source = access_of(from, action::read), target = access_of(any_array(rank, false), action::update);
  for (int i = 0; clashes({source}, target) && i < 10; ++i) target = access_of(any_array(rank, false), action::update);
  if (clashes({source}, target)) return each();
  source.map.what = mapping::kind::one_to_one;
  target.map.what = mapping::kind::all;
  op.accesses = {source, target};
  cut(op, source.size(), rank, true, 12);
  return op;
}

operation generator::scatter() {
  operation op = start(kind::scatter);
  const int to = any_array(1, false), from = any_array(0, false);
  if (to < 0) return call();
  access_plan source = access_of(from, action::read);
  access_plan target = access_of(to, draw_.one_in(2) ? action::add : action::exclusive_or);
  if (clashes({source}, target)) return call();
  source.map.what = draw_.one_in(2) ? mapping::kind::none : mapping::kind::one_to_one;
  op.accesses = {source, target};
  cut(op, source.size(), arrays_[static_cast<std::size_t>(from)].rank, true, 20);
  place(op, false);
  return op;
}

operation generator::contents_for(int array) {
  if (with("kernels") && draw_.one_in(3)) return changing(array, action::write, true);
  operation op = start(kind::each);
  access_plan target;
  target.array = array;
  target.part = arrays_[static_cast<std::size_t>(array)].whole();
  target.what = action::write;
  target.map.what = mapping::kind::one_to_one;
  op.accesses = {target};
  cut(op, target.size(), arrays_[static_cast<std::size_t>(array)].rank,
      arrays_[static_cast<std::size_t>(array)].fragile, 40);
  return op;
}

operation generator::changing(int array, action what, bool all) {
  operation op = start(kind::call);
  access_plan target = access_of(array, what);
  if (all) target.part = arrays_[static_cast<std::size_t>(array)].whole();
  op.accesses = {target};
  return op;
}

// ---- kernels --------------------------------------------------------------------------------------------------------

operation generator::stir() {
  operation op = start(kind::stir);
  const int to = any_array(0, false);
  access_plan target = access_of(to, action::update);
  op.accesses = {target};
  if (draw_.one_in(2)) cut(op, target.size(), arrays_[static_cast<std::size_t>(to)].rank, false, 40);
  place(op, true);
  return op;
}

operation generator::stencil() {
  operation op = start(kind::stencil);
  const int to = any_array(0, false);
  const array_plan& target_array = arrays_[static_cast<std::size_t>(to)];
  const int from = any_array(target_array.rank, false);
  access_plan source = access_of(from, action::read), target = access_of(to, action::write);
  for (std::size_t d = 0; d < 4; ++d) {
    const index size = std::min(source.part.size(d), target.part.size(d));
    source.part.hi[d] = source.part.lo[d] + size;
    target.part.hi[d] = target.part.lo[d] + size;
  }
  if (clashes({source}, target)) return stir();
  index count = 1;
  source.map.what = mapping::kind::window;
  for (std::size_t d = 0; d < static_cast<std::size_t>(target_array.rank); ++d) {
    source.map.radius[d] = draw_.from(0, 2);
    if (count * (2 * source.map.radius[d] + 1) > 75) source.map.radius[d] = 0;
    count *= 2 * source.map.radius[d] + 1;
  }
  if (draw_.one_in(3)) {
    source.map.border = edge::clip;  // all of it, spawned
  } else {
    source.map.border = with("windows") ? static_cast<edge>(draw_.from(0, 3)) : edge::clip;
    source.map.constant = draw_.word();
    cut(op, target.size(), target_array.rank, false, 40);
  }
  op.accesses = {source, target};
  place(op, true);
  return op;
}

operation generator::fold() {
  operation op = start(kind::fold);
  const int to = any_array(1, false), from = any_array(0, false);
  if (to < 0) return stir();
  access_plan source = access_of(from, action::read), target = access_of(to, action::add);
  target.part.hi[0] = std::min(target.part.hi[0], target.part.lo[0] + 256);
  if (clashes({source}, target)) return stir();
  op.accesses = {source, target};
  if (draw_.one_in(2)) {
    cut(op, source.size(), arrays_[static_cast<std::size_t>(from)].rank, true, 20);
    op.accesses[0].map.what = mapping::kind::one_to_one;
  }
  place(op, true);
  return op;
}

// ---- the host -------------------------------------------------------------------------------------------------------

operation generator::host() {
  operation op = start(kind::host);
  const int a = any_array(0, with("failures") && draw_.one_in(5));
  const action what[] = {action::read, action::write, action::update};
  op.accesses = {access_of(a >= 0 ? a : 0, what[draw_.from(0, 2)])};
  return op;
}

operation generator::try_read() {
  operation op = start(kind::try_read);
  op.accesses = {access_of(any_array(0, false), action::read)};
  op.patience_us = static_cast<int>(draw_.from(0, 500));
  return op;
}

void generator::open() {
  operation op = host();
  const int a = any_array(0, false);
  op.accesses[0] = access_of(a, op.accesses[0].what);
  op.what = kind::open;
  op.slot = static_cast<int>(open_.size());
  open_.push_back({op.slot, a});
  put(op);
}

void generator::close() {
  operation op = start(kind::close);
  op.slot = open_.back().slot;
  open_.pop_back();
  put(op);
}

// ---- the rest -------------------------------------------------------------------------------------------------------

operation generator::from_future(kind k) {
  std::vector<int> from = values();
  if (k == kind::wait || k == kind::wait_briefly || k == kind::drop_future) {
    from.clear();
    for (std::size_t i = operations_.size() > 60 ? operations_.size() - 60 : 0; i < operations_.size(); ++i)
      if (operations_[i].keep && !dropped_.contains(static_cast<int>(i)) && may_be_kept(operations_[i]))
        from.push_back(static_cast<int>(i));
  }
  if (k == kind::await_two && !with("coroutines")) k = kind::then;
  if (k == kind::then && !with("continuations")) return call();
  if (from.empty()) return call();
  operation op = start(k);
  const auto one = [&] { return from[static_cast<std::size_t>(draw_.from(0, static_cast<index>(from.size()) - 1))]; };
  op.futures = {one()};
  if (k == kind::await_two) {
    op.futures.push_back(one());
    op.keep = true;
  }
  if (k == kind::drop_future) dropped_.insert(op.futures[0]);
  op.patience_us = static_cast<int>(draw_.from(0, 3000));
  op.priority = 0;
  return op;
}

bool generator::may_be_kept(const operation& op) {
  switch (op.what) {
    case kind::call:
    case kind::each:
    case kind::sweep:
    case kind::scatter:
    case kind::stir:
    case kind::stencil:
    case kind::fold:
    case kind::run:
    case kind::then:
      return true;
    default:
      return false;
  }
}

void generator::renew() {
  std::vector<int> fits;
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    const bool is_open =
        std::any_of(open_.begin(), open_.end(), [&](const auto& o) { return o.array == static_cast<int>(i); });
    // The last handle of borrowed memory waits for what uses it, which may wait for a view that is held.
    const bool waits = arrays_[i].from == array_plan::origin::borrowed && !open_.empty();
    if (!in_graph_[i] && !is_open && !waits) fits.push_back(static_cast<int>(i));
  }
  if (fits.empty()) return put(call());
  operation op = start(kind::renew);
  op.array = fits[static_cast<std::size_t>(draw_.from(0, static_cast<index>(fits.size()) - 1))];
  array_plan& a = arrays_[static_cast<std::size_t>(op.array)];
  const auto bytes = a.whole().volume();
  const bool fragile = a.fragile;
  do a = draw_array(draw_, fragile, false, with("borrow"));
  while (plan_.memory_bytes != 0 && a.whole().volume() > bytes);  // what the budget was made for
  op.renewed = a;
  put(op);
  if (a.from == array_plan::origin::allocated) put(contents_for(op.array));
}

operation generator::wrong() {
  operation op = start(kind::wrong);
  op.wrong = static_cast<operation::mistake>(draw_.from(0, 4));
  if (op.wrong == operation::mistake::overlap && !with("overlap")) op.wrong = operation::mistake::outside;
  op.accesses = {access_of(any_array(0, false), action::update)};
  return op;
}

operation generator::count() {
  operation op = start(kind::count);
  op.keep = false;
  return op;
}

std::vector<operation> generator::graph() {
  const std::vector<operation> outside = std::move(operations_);
  operations_.clear();
  std::vector<operation> recorded;
  const int length = static_cast<int>(draw_.from(1, 14));
  while (static_cast<int>(recorded.size()) < length) {
    operation op;
    switch (draw_.from(0, 7)) {
      case 0:
      case 1:
      case 2:
        op = call();
        break;
      case 3:
        op = each();
        break;
      case 4:
        op = with("sweeps") ? sweep() : each();
        break;
      case 5:
        op = with("reductions") ? scatter() : call();
        break;
      default:
        op = with("kernels") ? (draw_.one_in(2) ? stir() : stencil()) : call();
    }
    const bool fails = op.fails_for_good() || op.stopping != operation::stop::never ||
                       std::any_of(op.accesses.begin(), op.accesses.end(), [&](const access_plan& a) {
                         return arrays_[static_cast<std::size_t>(a.array)].fragile;
                       });
    if (fails) continue;
    op.amounts.clear();
    op.futures.clear();
    op.where.clear();
    op.keep = false;
    if (!with("graph_waits")) op.inner = {};
    if (plan_.memory_bytes != 0) op.inner = {};
    for (const access_plan& a : op.accesses) in_graph_[static_cast<std::size_t>(a.array)] = true;
    recorded.push_back(std::move(op));
  }
  operations_ = outside;
  return recorded;
}

}  // namespace mixed
