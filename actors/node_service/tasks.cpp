// What this file is for: tasks of another node: how they are made, started, stopped, and what is told of their end.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>

#include <troupe/error.hpp>

#include "actors/execution/graph_part.hpp"
#include "actors/execution/task_errors.hpp"
#include "actors/execution/written_copies.hpp"
#include "actors/logic/data/reduction_operators.hpp"
#include "actors/memory/runtime_state.hpp"
#include "actors/node_service/actor.hpp"
#include "actors/node_service/call_checks.hpp"
#include "actors/protocol/phase.hpp"

namespace troupe::detail {

namespace {

errc code_of(const std::exception_ptr& why) {
  try {
    std::rethrow_exception(why);
  } catch (const error& e) {
    return e.code();
  } catch (const std::bad_alloc&) {
    return errc::out_of_memory;
  } catch (...) {
    return errc::task_failed;
  }
}

wire::task_end failed(errc code, std::string text) {
  wire::task_end e;
  e.how = wire::outcome::failed;
  e.attempts = 0;  // no body of it has run
  e.code = code;
  e.text = std::move(text);
  return e;
}

// Takes the copies that the task's thread has made of what it wrote.
std::vector<wire::written_box> take_copies(task_record& t) {
  std::vector<wire::written_box> all;
  for (written_copy& w : t.extra->written)
    if (!w.bytes.empty()) all.push_back({static_cast<std::uint32_t>(w.access), std::move(w.bytes)});
  return all;
}

// Returns how a task ended; an error without the names wrapped around it here: the owner has its own.
wire::task_end end_of(const task_record& t) {
  try {
    throw_task_error(t);
  } catch (const task_failed& f) {
    wire::task_end e = failed(f.code(), f.what());
    if (f.code() == errc::no_executor && f.cause()) {  // no device here can, those of others may
      e.how = wire::outcome::no_room;
      e.text = text_of(f.cause());
      return e;
    }
    const bool plain = f.code() == errc::task_failed;
    if (f.cause() && (plain || (f.code() != errc::dependency_failed && f.code() == code_of(f.cause())))) {
      e.code = code_of(f.cause());
      e.text = text_of(f.cause());
      if (t.kind == task_kind::graph_run && f.root_task() != f.task()) e.root = f.root_task();
    }
    if (f.code() != errc::dependency_failed) return e;
    e.how = wire::outcome::not_run;
    if (f.root_task() != access_kernel.name || !f.cause()) return e;
    // Nothing of the owner's has failed: what it was to read has not come in.
    e.code = code_of(f.cause());
    e.how = e.code == errc::unreachable ? wire::outcome::unfilled : wire::outcome::no_room;
    e.text = text_of(f.cause());
    return e;
  } catch (...) {
    return failed(code_of(std::current_exception()), text_of(std::current_exception()));
  }
  wire::task_end e;
  e.measured_ns = std::max(0.0f, t.measured_ns);
  return e;
}

// A run of a graph's part has no body of its own, and no result.
constexpr task_ops part_run_ops{[](task_record&, task_context&) {}, [](task_record&) {}, [](task_record&) noexcept {},
                                [](task_record&) noexcept -> void* { return nullptr; }};

// Checks a task that runs a part of a graph: which tiles it may hold is known to the part.
std::vector<std::span<const std::byte>> check_part(const wire::task_descriptor& c, const named_array& array_of) {
  std::vector<std::span<const std::byte>> values(c.values.begin(), c.values.end());
  if (values.size() != 2 || values[0].size() != sizeof(std::uint64_t) || values[1].size() != sizeof(std::uint64_t))
    refuse_peer("a run of a graph without its numbers");
  for (const wire::access_descriptor& x : c.accesses) {
    const array_core* const known = array_of(x.array);
    if (!known) refuse_peer("an array that was not named before");
    check_access(*known, x);
    if (x.fresh || x.returns || x.mode == access_mode::reduce) refuse_peer("a run of a graph that holds no tile");
  }
  return values;
}

}  // namespace

void node_service_actor::take_in(const wire::array_descriptor& c) {
  array_spec s = spec_of(c);
  if (arrays_.contains(c.id)) refuse_peer("an array that is there already");
  array_core* const a = new_array(engine_, std::move(s));
  a->place_if_missed();  // some of its tiles will be here
  arrays_.emplace(c.id, a);
}

// Asks for the boxes of the next task. After `close_intake` no task is taken, and their pushes are forgotten.
void node_service_actor::take_in(const wire::gaps& g) {
  const auto a = arrays_.find(g.array);
  if (a == arrays_.end()) refuse_peer("an array that was not named before");
  if (closed_) return pushes_.forget(g.all);
  for (const wire::gap& one : g.all) ask_for(*a->second, g.array, one);
}

// ---- starting -------------------------------------------------------------------------------------------------------

void node_service_actor::start(const wire::task_descriptor& c) {
  if (tasks_.contains(c.id)) refuse_peer("a task that is there already");
  remote_task& r = tasks_.add(c.id);
  const auto refuse_it = [&](wire::task_end end) {
    tasks_.note_refused(c.id);
    for (const wire::access_descriptor& x : c.accesses) pushes_.forget(x.gaps);
    refuse_task(r, std::move(end));
  };
  if (closed_) {
    wire::task_end end = failed(errc::runtime_stopped, "the node is leaving");
    end.how = wire::outcome::not_run;
    return refuse_it(std::move(end));
  }
  try {
    make_task(r, c);
  } catch (const std::exception& e) {
    wire::task_end end = failed(code_of(std::current_exception()), e.what());
    if (end.code != errc::protocol_error) return refuse_it(std::move(end));
    for (const wire::access_descriptor& x : c.accesses) pushes_.forget(x.gaps);
    remove(r);
    throw;
  }
  asked_.clear();
  later_.submit(*r.task);
  tasks_.started(r);
}

// Ends a task that cannot run here. Boxes it asked for are awaited first: the owner keeps them until told the end.
void node_service_actor::refuse_task(remote_task& r, wire::task_end end) {
  end.id = r.id;
  for (task_record* t : std::exchange(asked_, {}))
    if (transfer* const x = transfers_.of(t); x && x->what == transfer::use::in && !x->of) {
      x->of = &r;
      ++r.on_their_way;
    }
  if (r.on_their_way != 0) {
    r.untold = std::make_unique<wire::task_end>(std::move(end));
    return;
  }
  remove(r);
  tell_end(end);
}

// Describes one access of a task's record, keeps the arrays whose boxes go back, and asks for the boxes that are
// missing.
void node_service_actor::add_access(remote_task& r, task_record& t, const wire::access_descriptor& x) {
  const int number = t.access_count;
  array_core* a = arrays_.at(x.array);
  if (x.fresh) {
    array_spec s = a->spec;
    s.fill = x.fill.data();
    a = new_array(engine_, std::move(s));
    a->place_if_missed();
    r.arrays.push_back(a);
  } else if (x.returns) {
    retain(a);
    r.arrays.push_back(a);
  }
  for (const wire::gap& gap : x.gaps) ask_for(*a, x.array, gap);
  const access_mode mode = x.fresh ? access_mode::update : x.mode;
  describe(engine_, t.accesses[number], *a, mode, x.where.lo, x.where.hi, x.limit.lo, x.limit.hi, x.edge, x.fill.data(),
           x.edge == border::fill ? a->spec.element : 0, nullptr);
  ++t.access_count;
  if (x.returns) r.returns.emplace_back(number, x);
}

// Makes the record of a task as its owner describes it. Throws what is wrong with that, or lacking here.
void node_service_actor::make_task(remote_task& r, const wire::task_descriptor& c) {
  const bool is_part = c.kernel == graph_part_kernel.key;
  const offered_kernel* const k = is_part ? nullptr : find_offer(c.kernel);
  if (!is_part && !k) throw error(errc::no_executor, "the kernel is not offered there");
  const named_array array_of = [this](std::uint64_t id) -> const array_core* {
    const auto known = arrays_.find(id);
    return known == arrays_.end() ? nullptr : known->second;
  };
  check_sums(c);
  const checked_call checked = k ? check_call(c, *k, array_of) : checked_call{check_part(c, array_of), {}};
  struct holder {
    task_record* task;
    ~holder() {
      if (!task) return;
      discard(task);
      release(task);
    }
  } made{new_task(engine_)};
  task_record& t = *made.task;
  t.ops = nullptr;
  if (static_cast<int>(c.accesses.size()) > task_record::inline_accesses) size_accesses(t, c.accesses.size());
  for (const wire::access_descriptor& x : c.accesses) add_access(r, t, x);
  t.kernel = intern(engine_, k ? k->info : graph_part_kernel);
  task_options o;
  o.name = c.name;
  o.priority = c.priority;
  o.retries = static_cast<int>(c.retries);
  o.resources = c.resources;
  o.stop = r.stop.get_token();
  o.where = here_;
  apply(engine_, t, o);
  check_kernel(engine_, t);
  if (!checked.lists.empty()) check_shapes(t, checked.lists);
  extra_of(t).listener = this;
  t.extra->watched = c.watched;
  std::size_t left = wire::inline_task_max;
  for (std::size_t i = 0; i < c.accesses.size(); ++i)
    if (c.accesses[i].copied || c.accesses[i].returns)
      left -= ask_for_copy(t, static_cast<int>(i), std::min(left, wire::inline_max));
  if (k)
    k->fill(t, k->body.get(), checked.values);
  else
    make_part(t, checked.values);
  for (const wire::access_descriptor& x : c.accesses) {
    if (x.group == 0) continue;
    const std::uint64_t bytes =
        static_cast<std::uint64_t>(intersect(x.where, x.limit).volume()) * arrays_.at(x.array)->spec.element;
    if (!groups_.came(x.group, combiner_of(x.op), bytes)) refuse_peer("partials of one reduction that differ");
    r.group = x.group;
  }
  r.task = std::exchange(made.task, nullptr);
}

// Makes the task a run of a part of one of the owner's graphs.
void node_service_actor::make_part(task_record& t, std::span<const std::span<const std::byte>> values) {
  std::uint64_t graph = 0;
  std::memcpy(&graph, values[0].data(), sizeof graph);
  std::memcpy(&t.extra->run_of_part, values[1].data(), sizeof t.extra->run_of_part);
  t.extra->payload = find_part_(graph);
  t.kind = task_kind::graph_run;
  t.ops = &part_run_ops;
  t.body_gone = true;
}

// The owner takes a task back that has not begun. Placement is done with it when its turn comes, as with any task that
// was cancelled in time.
void node_service_actor::recall(std::uint64_t id) {
  remote_task* const r = tasks_.find(id);
  if (!r || !r->task || !claim(*r->task)) return;
  r->recalled = true;
  // Tasks after it do not run here either and go back as well, for it was not cancelled.
  r->task->error = refused_error(*r->task, errc::unreachable, "its owner has taken it back");
  fulfil(*r->task, board_);
}

// ---- what placement tells -------------------------------------------------------------------------------------------

void node_service_actor::ended(remote_task& r, bool runtime_ends) {
  task_record& t = *tasks_.ended(r);
  wire::task_end end = end_of(t);
  const int bodies = t.extra->bodies;
  end.id = r.id;
  end.attempts = bodies;
  if (r.recalled) end.how = wire::outcome::unfilled;
  // A task that ended as cancelled, without a body and not by its owner's word, was not run: what it depends on was
  // called off, which the owner knows by its own order.
  if (end.how == wire::outcome::failed && end.code == errc::cancelled && bodies == 0 && !r.stop.stop_requested())
    end.how = wire::outcome::not_run;
  // The runtime here gives its tasks up: its owner has a task that has not begun run elsewhere.
  if (end.how != wire::outcome::ran && bodies == 0 && runtime_ends) {
    end = failed(errc::runtime_stopped, "the node was shut down");
    end.how = wire::outcome::unfilled;
    end.id = r.id;
  }
  if (end.how == wire::outcome::ran && !left_) end.written = take_copies(t);
  later_.release(t);
  if (end.how == wire::outcome::ran && !left_ && !r.returns.empty()) {
    try {
      send_back(r, end.written);
    } catch (const std::exception& e) {  // for want of memory; what is on its way is thrown away there
      end = failed(code_of(std::current_exception()), e.what());
      end.id = r.id;
      end.attempts = bodies;
    }
  }
  end.in_sum = r.group != 0 && end.how == wire::outcome::ran && r.on_their_way != 0;
  tell_end(end);
  if (!end.in_sum) leave_sum(r);
  if (r.on_their_way == 0) remove(r);
}

}  // namespace troupe::detail
