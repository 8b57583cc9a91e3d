// What this file is for: carries out the operations of one client against the library.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "client.hpp"


#include <algorithm>
#include <chrono>
#include <coroutine>
#include <span>
#include <stop_token>

#include "oracle.hpp"

namespace mixed {

using kind = operation::kind;
using outcome = observation::kind;

observation current_error() {
  try {
    throw;
  } catch (const troupe::error& e) {
    switch (e.code()) {
      case troupe::errc::task_failed:
        return {outcome::failed, 0, e.what()};
      case troupe::errc::dependency_failed:
        return {outcome::poisoned, 0, e.what()};
      case troupe::errc::cancelled:
        return {outcome::cancelled, 0, e.what()};
      default:
        return {outcome::other, 0, "error " + std::to_string(static_cast<int>(e.code())) + ": " + e.what()};
    }
  } catch (const std::exception& e) {
    return {outcome::other, 0, e.what()};
  }
}

observation outcome_of(const any_future& f) {
  try {
    if (const auto* with_value = std::get_if<troupe::future<result>>(&f))
      return {outcome::value, with_value->get().value};
    if (const auto* without = std::get_if<troupe::future<void>>(&f)) {
      without->get();
      return {outcome::done};
    }
    return {};
  } catch (...) {
    return current_error();
  }
}

troupe::task_options options_of(const session& all, const operation& op, const std::stop_token& stop) {
  troupe::task_options how;
  std::size_t from = op.where == "gpu" && !all.has_devices() ? op.where.size() : 0;
  while (from < op.where.size()) {
    const std::size_t end = std::min(op.where.find('|', from), op.where.size());
    const std::string name = op.where.substr(from, end - from);
    const troupe::scope one = name == "cpu"    ? troupe::scope::cpu()
                              : name == "gpu"  ? troupe::scope::gpu()
                              : name == "here" ? troupe::scope::here()
                                               : troupe::scope::executor(name);
    how.where = from == 0 ? one : how.where | one;
    from = end + 1;
  }
  how.priority = op.priority;
  for (const amount_plan& a : op.amounts)
    if (a.name != "gpu" || all.has_devices()) how.resources.push_back({a.name, static_cast<double>(a.amount)});
  how.retries = op.retries;
  how.stop = stop;
  return how;
}

// ---- coroutines -----------------------------------------------------------------------------------------------------

namespace {

struct detached {
  struct promise_type {
    detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

detached await_both(session& all, std::size_t client, std::size_t number, troupe::future<result> a,
                    troupe::future<result> b, word salt, std::shared_ptr<std::promise<observation>> to) {
  observation seen;
  try {
    word h = mix(salt, (co_await a).value);
    h = mix(h, (co_await b).value);
    seen = {outcome::value, h};
  } catch (...) {
    seen = current_error();
  }
  all.at(client, number, phase::ended);
  to->set_value(seen);
}

template <class V>
void change_view(const V& v, action what, word h) {
  for_points(area_of(v.bounds()), [&](const point& p) { element(v, p) = changed(what, element(v, p), h, p); });
}
template <class T, int N>
word digest(const troupe::view<T, N>& v, word h) {
  for_points(area_of(v.bounds()), [&](const point& p) { h = mix(h, element(v, p)); });
  return h;
}

}  // namespace

// ---- the thread -----------------------------------------------------------------------------------------------------

client::client(session& all, std::size_t number, const troupe::array<word, 1>& common)
    : all_(all), plan_(all.about().clients[number]), number_(number), common_(common) {
  have_.all = &all;
  have_.about = plan_.arrays;
  futures_.resize(plan_.operations.size());
  observed_.resize(plan_.operations.size());
}

void client::run() {
  std::size_t i = 0;
  try {
    for (std::size_t a = 0; a < plan_.arrays.size(); ++a)
      have_.arrays.push_back(make(static_cast<int>(a), plan_.arrays[a]));
    // Arrays without contents get some first: so many operations there are before any other.
    while (i < plan_.arrays.size() && i < plan_.operations.size() && plan_.operations[i].salt != 0 &&
           gives_contents(i)) {
      carry_out(i, plan_.operations[i]);
      ++i;
    }
    record();
    for (; i < plan_.operations.size(); ++i) carry_out(i, plan_.operations[i]);
    for (i = 0; i < futures_.size(); ++i)
      if (observed_[i].what == outcome::none) observed_[i] = outcome_of(futures_[i]);
    for (auto& [at, value] : awaited_) observed_[at] = value.get();
    futures_.clear();
  } catch (...) {
    all_.give_up();
    all_.complain("client " + std::to_string(number_) + ", operation " + std::to_string(i) + " threw: " +
                  current_error().text());
    open_.clear();
    futures_.clear();
  }
}

bool client::gives_contents(std::size_t i) const {
  const operation& op = plan_.operations[i];
  return (op.what == kind::call || op.what == kind::each) && op.accesses.size() == 1 &&
         op.accesses[0].what == action::write;
}

any_array client::make(int slot, const array_plan& a) {
  troupe::runtime& rt = all_.runtime();
  const std::string name = "c" + std::to_string(number_) + "a" + std::to_string(slot);
  return with_rank(a.rank, [&](auto n) -> any_array {
    constexpr int N = n;
    troupe::extent<N> size;
    troupe::tile_shape<N> tile;
    troupe::index_t sizes[static_cast<std::size_t>(N)];
    for (int d = 0; d < N; ++d) {
      sizes[d] = size[d] = a.size[static_cast<std::size_t>(d)];
      tile.size[d] = a.tile[static_cast<std::size_t>(d)];
    }
    const auto listed = [&] {
      std::vector<word> data;
      for_points(a.whole(), [&](const point& p) { data.push_back(initial(a.salt, p)); });
      return data;
    };
    switch (a.from) {
      case array_plan::origin::filled:
        return rt.filled<word>(sizes, tile, a.salt, name);
      case array_plan::origin::adopted:
        return rt.adopt<word>(listed(), sizes, tile, name);
      case array_plan::origin::borrowed: {
        auto& memory = memory_[slot] = std::make_unique<std::vector<word>>(listed());
        return rt.borrow<word>(std::span<word>(*memory), sizes, tile, name);
      }
      default:
        return rt.array<word, N>(size, tile, name);
    }
  });
}

void client::record() {
  for (const std::vector<operation>& recorded : plan_.graphs)
    graphs_.push_back(all_.runtime().record([&](troupe::recorder& r) {
      for (const operation& op : recorded) {
        const assignment a{&all_, &op, number_, 0, true};
        const troupe::task_options how = options_of(all_, op, {});
        if (op.what == kind::call)
          spawn_call(r, have_, a, how, {});
        else if (op.what == kind::stir || op.what == kind::stencil || op.what == kind::fold)
          kernel_call(r, have_, a, how);
        else
          each_call(r, have_, a, how);
      }
    }));
}

void client::carry_out(std::size_t i, const operation& op) {
  all_.at(number_, i, phase::calling);
  // An operation without a body of ours is over when it has been called, as far as anybody can see.
  phase after = phase::ended;
  switch (op.what) {
    case kind::call:
    case kind::each:
    case kind::sweep:
    case kind::scatter:
    case kind::stir:
    case kind::stencil:
    case kind::fold:
      return call(i, op);
    case kind::run:
      futures_[i] = all_.runtime().run({.priority = op.priority}, graphs_[static_cast<std::size_t>(op.graph)]);
      break;
    case kind::host:
      host(i, op);
      break;
    case kind::open:
      open(i, op);
      break;
    case kind::close:
      close();
      break;
    case kind::try_read:
      try_read(i, op);
      break;
    case kind::then:
      continue_after(i, op);
      break;
    case kind::await_two:
      after = phase::called;
      await(i, op);
      break;
    case kind::wait:
      observed_[i] = outcome_of(futures_[static_cast<std::size_t>(op.futures[0])]);
      break;
    case kind::wait_briefly: {
      const auto briefly = std::chrono::microseconds(op.patience_us);
      std::visit(
          [&](const auto& f) {
            if constexpr (!std::is_same_v<std::decay_t<decltype(f)>, std::monostate>)
              if (f.wait_for(briefly) && !f.is_ready())
                all_.complain("wait_for says that a task is done, is_ready not");
          },
          futures_[static_cast<std::size_t>(op.futures[0])]);
      break;
    }
    case kind::wait_all:
      all_.runtime().wait_all_for(std::chrono::microseconds(op.patience_us));
      break;
    case kind::look:
      look(op);
      break;
    case kind::drop_future:
      futures_[static_cast<std::size_t>(op.futures[0])] = {};
      break;
    case kind::renew: {
      const auto slot = static_cast<std::size_t>(op.array);
      if (have_.about[slot].from == array_plan::origin::borrowed) {
        renewed_.push_back(std::move(memory_[op.array]));
        memory_.erase(op.array);
      }
      have_.arrays[slot] = array_of<1>();
      have_.about[slot] = op.renewed;
      have_.arrays[slot] = make(op.array, op.renewed);
      break;
    }
    case kind::wrong:
      be_wrong(i, op);
      break;
    case kind::count:
      count(op);
      break;
  }
  if (after != phase::ended && !awaited_.contains(i)) after = phase::ended;
  if (op.what != kind::await_two) all_.at(number_, i, after);
}

void client::call(std::size_t i, const operation& op) {
  std::stop_source stop;
  const bool stops = op.stopping != operation::stop::never;
  if (op.stopping == operation::stop::before) stop.request_stop();
  const troupe::task_options how = options_of(all_, op, stops ? stop.get_token() : std::stop_token());
  const assignment a{&all_, &op, number_, i, false};
  any_future f;
  if (op.what == kind::call) {
    std::vector<const troupe::future<result>*> from;
    for (int k : op.futures) from.push_back(&std::get<troupe::future<result>>(futures_[static_cast<std::size_t>(k)]));
    f = spawn_call(all_.runtime(), have_, a, how, from);
  } else if (op.what == kind::stir || op.what == kind::stencil || op.what == kind::fold) {
    f = kernel_call(all_.runtime(), have_, a, how);
    all_.at(number_, i, phase::ended);
  } else {
    f = each_call(all_.runtime(), have_, a, how);
  }
  all_.progress();
  if (op.stopping == operation::stop::after || op.stopping == operation::stop::polled) {
    stop.request_stop();
    observed_[i] = outcome_of(f);
  }
  if (op.stopping != operation::stop::never) all_.at(number_, i, phase::ended);
  if (op.keep) futures_[i] = std::move(f);
}

// ---- the host -------------------------------------------------------------------------------------------------------

void client::host(std::size_t i, const operation& op) {
  const access_plan& a = op.accesses[0];
  try {
    observed_[i] = with_rank(have_.plan_of(a).rank, [&](auto n) -> observation {
      const auto handle = have_.part<n>(a);
      if (a.what == action::read) return {outcome::value, digest<const word, n>(handle.read(), op.salt)};
      const auto v = a.what == action::write ? handle.write() : handle.update();
      const word h = a.what == action::write ? op.salt : digest<word, n>(v, op.salt);
      change_view(v, a.what, h);
      return {outcome::value, h};
    });
  } catch (const troupe::error&) {
    observed_[i] = current_error();
  }
}

void client::open(std::size_t i, const operation& op) {
  const access_plan& a = op.accesses[0];
  opened o{&op, i, op.salt, {}};
  with_rank(have_.plan_of(a).rank, [&](auto n) {
    const auto handle = have_.part<n>(a);
    if (a.what == action::read) {
      auto v = handle.read();
      o.seen = digest<const word, n>(v, op.salt);
      o.view = std::move(v);
    } else {
      auto v = a.what == action::write ? handle.write() : handle.update();
      if (a.what == action::update) o.seen = digest<word, n>(v, op.salt);
      o.view = std::move(v);
    }
  });
  observed_[i] = {outcome::value, o.seen};
  open_.push_back(std::move(o));
}

void client::close() {
  opened o = std::move(open_.back());
  open_.pop_back();
  const operation& op = *o.op;
  const action what = op.accesses[0].what;
  std::visit(
      [&](auto& v) {
        using type = std::decay_t<decltype(v)>;
        if constexpr (!std::is_same_v<type, std::monostate>) {
          // Nobody may have touched it meanwhile.
          if (what != action::write && digest(v, op.salt) != o.seen)
            all_.complain("an array changed under the host view of operation " + std::to_string(o.number));
          if constexpr (!std::is_const_v<std::remove_pointer_t<decltype(v.data())>>) change_view(v, what, o.seen);
          v.close();
        }
      },
      o.view);
}

void client::try_read(std::size_t i, const operation& op) {
  const access_plan& a = op.accesses[0];
  with_rank(have_.plan_of(a).rank, [&](auto n) {
    const auto v = have_.part<n>(a).try_read_for(std::chrono::microseconds(op.patience_us));
    if (v) observed_[i] = {outcome::value, digest<const word, n>(*v, op.salt)};
  });
}

std::vector<contents> client::read_all() {
  std::vector<contents> list;
  for (std::size_t i = 0; i < have_.arrays.size(); ++i) {
    contents c;
    try {
      std::visit(
          [&](const auto& a) {
            const auto v = a.read();
            for_points(area_of(v.bounds()), [&](const point& p) { c.data.push_back(element(v, p)); });
          },
          have_.arrays[i]);
    } catch (const troupe::error&) {
      c = {};
    }
    all_.progress();
    list.push_back(std::move(c));
  }
  return list;
}

void client::drop() {
  graphs_.clear();
  have_.arrays.clear();
  common_ = {};
}

// ---- futures --------------------------------------------------------------------------------------------------------

void client::continue_after(std::size_t i, const operation& op) {
  const auto& from = std::get<troupe::future<result>>(futures_[static_cast<std::size_t>(op.futures[0])]);
  session& all = all_;
  auto f = from.then([&all, salt = op.salt, mark = counted(all)](const result& r) {
    all.progress();
    return result{mix(salt, r.value), counted(all)};
  });
  if (op.keep) futures_[i] = std::move(f);
}

void client::await(std::size_t i, const operation& op) {
  auto promise = std::make_shared<std::promise<observation>>();
  awaited_[i] = promise->get_future();
  all_.at(number_, i, phase::called);
  const auto of = [&](int k) { return std::get<troupe::future<result>>(futures_[static_cast<std::size_t>(k)]); };
  await_both(all_, number_, i, of(op.futures[0]), of(op.futures[1]), op.salt, std::move(promise));
}

// ---- the rest -------------------------------------------------------------------------------------------------------

void client::be_wrong(std::size_t i, const operation& op) {
  troupe::runtime& rt = all_.runtime();
  const access_plan& a = op.accesses[0];
  const auto nothing = [](const auto&...) {};
  troupe::errc expected = troupe::errc::bad_argument;
  try {
    switch (op.wrong) {
      case operation::mistake::empty_handle:
        rt.spawn(nothing, update(array_of<1>()));
        break;
      case operation::mistake::too_many_cores:
        expected = troupe::errc::no_resource;
        rt.spawn(troupe::task_options{.resources = {{"cpu", static_cast<double>(all_.about().threads + 1)}}}, [] {});
        break;
      case operation::mistake::unknown_resource:
        expected = troupe::errc::no_resource;
        rt.spawn(troupe::task_options{.resources = {{"unicorns", 1}}}, [] {});
        break;
      case operation::mistake::outside:
        expected = troupe::errc::out_of_bounds;
        std::visit(
            [&](const auto& handle) {
              auto outside = whole(handle.size());
              outside.hi[0] += 1;
              handle.sub(outside);
            },
            have_.arrays[static_cast<std::size_t>(a.array)]);
        break;
      case operation::mistake::overlap:
        expected = troupe::errc::overlapping_write;
        with_rank(have_.plan_of(a).rank, [&](auto n) {
          const auto handle = have_.part<n>(a);
          if (op.salt % 2 == 0)
            rt.spawn(nothing, update(handle), update(handle));
          else
            rt.spawn(nothing, write(handle), update(handle));
        });
        break;
    }
    observed_[i] = {outcome::other, 0, "a wrong call was accepted"};
  } catch (const troupe::error& e) {
    observed_[i] = e.code() == expected ? observation{outcome::refused} : current_error();
  }
}

void client::count(const operation& op) {
  session& all = all_;
  all_.runtime().spawn(
      [&all, salt = op.salt, mark = counted(all)](const troupe::view<word, 1>& v) {
        all.progress();
        for (troupe::index_t i = v.lo(0); i < v.hi(0); ++i) v.at(i) += addend(salt, i);
      },
      reduce(common_));
}

void client::look(const operation& op) {
  troupe::runtime& rt = all_.runtime();
  const troupe::runtime_report r = rt.report();
  if (r.finished > r.spawned)
    all_.complain("report: " + std::to_string(r.finished) + " finished of " + std::to_string(r.spawned));
  if (all_.about().memory_bytes != 0 && r.bytes_allocated_max > all_.about().memory_bytes)
    all_.complain("report: " + std::to_string(r.bytes_allocated_max) + " bytes were allocated");
  for (const troupe::resource& free : r.resources_free)
    if (free.amount < 0) all_.complain("report: less than nothing is free of " + free.name);
  (void)rt.executors(op.salt % 2 == 0 ? troupe::scope::cpu() : troupe::scope());
  (void)rt.links();
  for (std::size_t i = futures_.size(); i-- > 0;)
    if (const auto* f = std::get_if<troupe::future<result>>(&futures_[i])) {
      (void)rt.explain(*f).text();
      break;
    }
}

}  // namespace mixed
