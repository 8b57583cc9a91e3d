// What this file is for: the serial run of a plan. Geometry and borders are worked out here, element by element.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "oracle.hpp"

#include <algorithm>

#include "nested.hpp"

namespace mixed {

word addend(std::uint64_t salt, index at) { return mix(salt, static_cast<word>(at)); }

namespace {

using kind = operation::kind;
using outcome = observation::kind;

struct model {
  array_plan about{};
  std::vector<word> data{};
  std::vector<unsigned char> bad{};

  std::size_t offset(const point& p) const {
    return static_cast<std::size_t>(((p[0] * about.size[1] + p[1]) * about.size[2] + p[2]) * about.size[3] + p[3]);
  }
};

// A box of an array, whose coordinates begin at 0.
class part {
 public:
  part(model& m, const access_plan& a) : model_(&m), lo_(a.part.lo), size_(a.size()) {}

  const point& size() const { return size_; }
  area whole() const { return {{0, 0, 0, 0}, size_}; }
  word& at(const point& p) const { return model_->data[index_of(p)]; }
  unsigned char& bad(const point& p) const { return model_->bad[index_of(p)]; }
  bool any_bad(const area& where) const {
    bool found = false;
    for_points(where, [&](const point& p) { found = found || bad(p); });
    return found;
  }
  void mark(const area& where, bool is_bad) const {
    for_points(where, [&](const point& p) { bad(p) = is_bad; });
  }

 private:
  std::size_t index_of(point p) const {
    for (std::size_t d = 0; d < 4; ++d) p[d] += lo_[d];
    return model_->offset(p);
  }
  model* model_;
  point lo_, size_;
};

// Where a window's point lies in its array; false: nowhere.
bool resolve(const mapping& m, const point& size, point& q) {
  for (std::size_t d = 0; d < 4; ++d) {
    if (q[d] >= 0 && q[d] < size[d]) continue;
    if (m.border == edge::wrap)
      q[d] = ((q[d] % size[d]) + size[d]) % size[d];
    else if (m.border == edge::clamp)
      q[d] = q[d] < 0 ? 0 : size[d] - 1;
    else
      return false;
  }
  return true;
}

// The box of an access for one chunk, before borders.
area mapped(const mapping& m, int rank, const point& size, int space_rank, const area& chunk) {
  area b = chunk;
  switch (m.what) {
    case mapping::kind::all:
      return {{0, 0, 0, 0}, size};
    case mapping::kind::fixed:
      return m.where;
    case mapping::kind::slice:
      b.lo[static_cast<std::size_t>(m.dim)] = 0;
      b.hi[static_cast<std::size_t>(m.dim)] = size[static_cast<std::size_t>(m.dim)];
      return b;
    case mapping::kind::window:
      for (std::size_t d = 0; d < static_cast<std::size_t>(rank); ++d) {
        b.lo[d] -= m.radius[d];
        b.hi[d] += m.radius[d];
      }
      return b;
    case mapping::kind::mirror: {
      const auto d = static_cast<std::size_t>(m.dim);
      b.lo[d] = size[d] - chunk.hi[d];
      b.hi[d] = size[d] - chunk.lo[d];
      return b;
    }
    case mapping::kind::project:
      for (std::size_t d = 0; d < 4; ++d) {
        if (d < static_cast<std::size_t>(rank) && d < static_cast<std::size_t>(space_rank)) {
          b.lo[d] = projected(chunk.lo[d], size[d]);
          b.hi[d] = projected(chunk.hi[d] - 1, size[d]) + 1;
        } else {
          b.lo[d] = 0;
          b.hi[d] = size[d];
        }
      }
      return b;
    default:
      return b;
  }
}

std::vector<area> chunks_of(const operation& op) {
  point chunk = op.chunk;
  for (std::size_t d = 0; d < 4; ++d)
    if (chunk[d] == 0) chunk[d] = op.space[d];  // nobody can tell the difference
  std::vector<area> list;
  point at{0, 0, 0, 0};
  for (at[0] = 0; at[0] < op.space[0]; at[0] += chunk[0])
    for (at[1] = 0; at[1] < op.space[1]; at[1] += chunk[1])
      for (at[2] = 0; at[2] < op.space[2]; at[2] += chunk[2])
        for (at[3] = 0; at[3] < op.space[3]; at[3] += chunk[3]) {
          area c;
          for (std::size_t d = 0; d < 4; ++d) {
            c.lo[d] = at[d];
            c.hi[d] = std::min(at[d] + chunk[d], op.space[d]);
          }
          list.push_back(c);
        }
  return list;
}

class serial {
 public:
  serial(const client_plan& c, std::vector<word>& common, const std::vector<observation>& seen)
      : plan_(c), common_(common), seen_(seen) {
    for (const array_plan& a : c.arrays) arrays_.push_back(fresh(a));
    results_.resize(c.operations.size());
  }

  void run(std::size_t i) { results_[i] = step(plan_.operations[i], i); }

  expectation end() {
    expectation e;
    e.operations = std::move(results_);
    for (model& m : arrays_) e.arrays.push_back({std::move(m.data), std::move(m.bad)});
    e.borrowed = std::move(borrowed_);
    return e;
  }

 private:
  static model fresh(const array_plan& a) {
    model m;
    m.about = a;
    const auto n = static_cast<std::size_t>(a.whole().volume());
    m.data.assign(n, a.salt);
    m.bad.assign(n, 0);
    if (a.from == array_plan::origin::adopted || a.from == array_plan::origin::borrowed)
      for_points(a.whole(), [&](const point& p) { m.data[m.offset(p)] = initial(a.salt, p); });
    return m;
  }

  part of(const access_plan& a) { return part(arrays_[static_cast<std::size_t>(a.array)], a); }

  observation step(const operation& op, std::size_t i) {
    switch (op.what) {
      case kind::call:
        return call(op, i);
      case kind::each:
        return each(op);
      case kind::sweep:
        return sweep(op);
      case kind::scatter:
        return scatter(op);
      case kind::stir: {
        const part a = of(op.accesses[0]);
        for_points(a.whole(), [&](const point& p) { a.at(p) = changed(action::update, a.at(p), op.salt, p); });
        return {outcome::done};
      }
      case kind::stencil:
        return stencil(op);
      case kind::fold: {
        const part from = of(op.accesses[0]), to = of(op.accesses[1]);
        for_points(from.whole(), [&](const point& p) {
          to.at({one_of(key(p), to.size()[0]), 0, 0, 0}) += mix(op.salt ^ from.at(p), key(p));
        });
        return {outcome::done};
      }
      case kind::host:
      case kind::open:
        return host(op);
      case kind::try_read: {
        const part a = of(op.accesses[0]);
        word h = op.salt;
        for_points(a.whole(), [&](const point& p) { h = mix(h, a.at(p)); });
        return {outcome::value, h};
      }
      case kind::run:
        for (const operation& each : plan_.graphs[static_cast<std::size_t>(op.graph)]) step(each, i);
        return {outcome::done};
      case kind::then: {
        const observation& from = results_[static_cast<std::size_t>(op.futures[0])];
        if (from.is_error()) return {outcome::poisoned};
        return {outcome::value, mix(op.salt, from.number)};
      }
      case kind::await_two: {
        word h = op.salt;
        for (int f : op.futures) {
          const observation& from = results_[static_cast<std::size_t>(f)];
          if (from.is_error()) return from;
          h = mix(h, from.number);
        }
        return {outcome::value, h};
      }
      case kind::wait: {
        observation from = results_[static_cast<std::size_t>(op.futures[0])];
        return from;
      }
      case kind::renew: {
        model& m = arrays_[static_cast<std::size_t>(op.array)];
        if (m.about.from == array_plan::origin::borrowed) {
          const bool whole = std::find(m.bad.begin(), m.bad.end(), 1) == m.bad.end();
          borrowed_.push_back(whole ? std::move(m.data) : std::vector<word>());
        }
        m = fresh(op.renewed);
        return {};
      }
      case kind::wrong:
        return {outcome::refused};
      case kind::count:
        for (std::size_t k = 0; k < common_.size(); ++k) common_[k] += addend(op.salt, static_cast<index>(k));
        return {};
      default:
        return {};
    }
  }

  observation call(const operation& op, std::size_t i) {
    observation result{outcome::value, op.salt};
    word& h = result.number;
    for (int f : op.futures) {
      const observation& from = results_[static_cast<std::size_t>(f)];
      if (from.is_error()) result.what = outcome::poisoned;
      h = mix(h, from.number);
    }
    for (const access_plan& a : op.accesses)
      if (a.what == action::read || a.what == action::update)
        if (of(a).any_bad(of(a).whole())) result.what = outcome::poisoned;
    if (op.stopping == operation::stop::before && result.what == outcome::value) result.what = outcome::cancelled;
    if (op.stopping == operation::stop::before && result.what == outcome::poisoned) result.what = outcome::cancelled;
    if (op.fails_for_good() && result.what == outcome::value) result.what = outcome::failed;
    if ((op.stopping == operation::stop::after || op.stopping == operation::stop::polled) && seen_[i].is_error())
      result.what = seen_[i].what;
    if (result.what != outcome::value) {
      for (const access_plan& a : op.accesses)
        if (a.what != action::read) of(a).mark(of(a).whole(), true);
      return result;
    }
    if (op.inner.what != nesting::kind::none) h = mix(h, nested_value(op.inner, op.salt, op.inner.depth));
    for (const access_plan& a : op.accesses) {
      if (a.what != action::read && a.what != action::update) continue;
      const part p = of(a);
      for_points(p.whole(), [&](const point& q) { h = mix(h, p.at(q)); });
    }
    word k = h;
    for (const access_plan& a : op.accesses) {
      if (a.what == action::read) continue;
      const part p = of(a);
      for_points(p.whole(), [&](const point& q) { p.at(q) = changed(a.what, p.at(q), k, q); });
      if (a.what == action::write) p.mark(p.whole(), false);
      ++k;
    }
    return result;
  }

  observation each(const operation& op) {
    const access_plan& target = op.accesses.back();
    const part to = of(target);
    const int rank = op.space_rank;
    observation result{outcome::done};
    for (const area& chunk : chunks_of(op)) {
      const area written = mapped(target.map, rank, to.size(), rank, chunk);
      bool poisoned = target.what == action::update && to.any_bad(written);
      for (std::size_t i = 0; i + 1 < op.accesses.size(); ++i) {
        const access_plan& a = op.accesses[i];
        const part from = of(a);
        for_points(mapped(a.map, rank_of(a), from.size(), rank, chunk), [&](point q) {
          if (resolve(a.map, from.size(), q)) poisoned = poisoned || from.bad(q);
        });
      }
      if (poisoned || (op.fails_for_good() && one_of(mix(op.salt, key(written.lo)), 3) == 0)) {
        result.what = outcome::failed;
        to.mark(written, true);
        continue;
      }
      for_points(written, [&](const point& t) {
        const point p = index_of_target(target.map, to.size(), t);
        word h = mix(op.salt, key(t));
        for (std::size_t i = 0; i + 1 < op.accesses.size(); ++i) {
          const access_plan& a = op.accesses[i];
          const part from = of(a);
          for_sources(a.map, rank_of(a), from.size(), rank, p, op.salt, [&](point q) {
            if (resolve(a.map, from.size(), q))
              h = mix(h, from.at(q));
            else if (a.map.border == edge::fill)
              h = mix(h, a.map.constant);
          });
        }
        if (op.inner.what != nesting::kind::none) h = mix(h, nested_value(op.inner, op.salt, op.inner.depth));
        to.at(t) = changed(target.what, to.at(t), h, t);
      });
      if (target.what == action::write) to.mark(written, false);
    }
    return result;
  }

  observation sweep(const operation& op) {
    const part from = of(op.accesses[0]), to = of(op.accesses[1]);
    for (const area& chunk : chunks_of(op)) {
      word h = op.salt;
      for_points(chunk, [&](const point& p) { h = mix(h, from.at(p)); });
      for_points(to.whole(), [&](const point& t) { to.at(t) = changed(action::update, to.at(t), h, t); });
    }
    return {outcome::done};
  }

  observation scatter(const operation& op) {
    const part from = of(op.accesses[0]), to = of(op.accesses[1]);
    for_points(from.whole(), [&](const point& p) {
      word& bin = to.at({one_of(mix(op.salt, key(p)), to.size()[0]), 0, 0, 0});
      bin = changed(op.accesses[1].what, bin, mix(op.salt, from.at(p)), p);
    });
    return {outcome::done};
  }

  observation stencil(const operation& op) {
    const access_plan& source = op.accesses[0];
    const part from = of(source), to = of(op.accesses[1]);
    for_points(to.whole(), [&](const point& p) {
      word h = mix(op.salt, key(p));
      area around{p, p};
      for (std::size_t d = 0; d < 4; ++d) {
        around.lo[d] -= source.map.radius[d];
        around.hi[d] += source.map.radius[d] + 1;
      }
      for_points(around, [&](point q) {
        if (resolve(source.map, from.size(), q))
          h = h * 31 + from.at(q);
        else if (source.map.border == edge::fill)
          h = h * 31 + source.map.constant;
      });
      to.at(p) = h;
    });
    return {outcome::done};
  }

  observation host(const operation& op) {
    const access_plan& a = op.accesses[0];
    const part p = of(a);
    observation result{outcome::value, op.salt};
    if (a.what != action::write) {
      if (p.any_bad(p.whole())) {
        if (a.what == action::update) p.mark(p.whole(), true);  // as a task's that could not run
        result.what = outcome::failed;
        return result;
      }
      for_points(p.whole(), [&](const point& q) { result.number = mix(result.number, p.at(q)); });
    }
    if (a.what != action::read)
      for_points(p.whole(), [&](const point& q) { p.at(q) = changed(a.what, p.at(q), result.number, q); });
    if (a.what == action::write) p.mark(p.whole(), false);
    return result;
  }

  int rank_of(const access_plan& a) const { return arrays_[static_cast<std::size_t>(a.array)].about.rank; }

  const client_plan& plan_;
  std::vector<word>& common_;
  const std::vector<observation>& seen_;
  std::vector<model> arrays_{};
  std::vector<observation> results_{};
  std::vector<std::vector<word>> borrowed_{};
};

}  // namespace

expectation oracle::client(std::size_t number, const std::vector<observation>& seen) {
  const client_plan& c = plan_.clients[number];
  serial run(c, common_, seen);
  for (std::size_t i = 0; i < c.operations.size(); ++i) {
    const bool first = number == 0 && static_cast<int>(i) == swapped_.first;
    run.run(first                                                                             ? i + 1
            : number == 0 && static_cast<int>(i) == swapped_.first + 1 && swapped_.first >= 0 ? i - 1
                                                                                              : i);
  }
  return run.end();
}

}  // namespace mixed
