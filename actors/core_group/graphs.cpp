// What this file is for: threads of a core group that take part in runs of recorded graphs.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <thread>

#include "actors/core_group/actor.hpp"
#include "actors/execution/graph_part.hpp"
#include "actors/execution/task_errors.hpp"
#include "actors/placement/placement.hpp"
#include "devices/threads.hpp"

namespace troupe::detail {

// Runs a recorded graph as the body of its task; threads that have nothing else to do join in, of this group and of the
// others in the run's scope.
std::exception_ptr group_actor::run_graph(worker& self, task_record& t) {
  auto graph = std::static_pointer_cast<recorded_graph>(t.extra->payload);
  // Threads whose bodies wait inside keep their hands: there are some for the spare ones.
  graph_run g(*graph, 2 * runs_.slots_of(t.extra->executors), &t);
  graph_run::hand& mine = g.take_hand();
  if (graph->part) try {
      graph->part->begin(g, t, [this, &g] { call_for_nodes(g); });
    } catch (...) {
      const std::exception_ptr why = std::current_exception();
      return task_error(t, options_.facts.name, 1, why, failure_code(why));
    }
  self.system_thread.store(devices::current_thread(), std::memory_order_relaxed);
  open_run(g, t.extra->executors);
  const auto finish = [&] {
    runs_.close(g);
    g.wait_for_helpers();
    if (graph->part) graph->part->end();
  };
  try {
    run_nodes(self, g, mine, true);
  } catch (...) {  // the thread ends
    finish();
    t.error = run_error(t, g.error);
    throw;
  }
  finish();
  return run_error(t, g.error);
}

// Opens a run to other threads, and wakes some for the nodes with which it begins, but the one that its owner takes.
// Threads that look are not counted on: one may take something else first.
void group_actor::open_run(graph_run& g, const logic::executor_set& scope) {
  const std::size_t ready = g.shared_count(), for_others = ready > 1 ? ready - 1 : 0;
  const std::size_t here = std::min(static_cast<std::size_t>(options_.facts.slots) - 1, for_others);
  const std::size_t elsewhere = std::min(parking::wakes_of_one, for_others - here);
  if (for_others != 0) g.note_called(here + elsewhere);
  runs_.open(g, options_.facts.id, scope);
  if (for_others == 0) return;
  g.begin_look();
  wake(here, parking::nearness::far);
  if (elsewhere != 0) runs_.call_others(g, options_.facts.id, elsewhere);
  g.end_look();
}

// Takes part in a run that has nodes for others; false: there is none.
bool group_actor::join_graph(worker& self) {
  graph_run::hand* const mine = runs_.join(options_.facts.id);
  if (!mine) return false;
  graph_run* const g = mine->run;
  call_missing(*g);
  found_work(self);
  outside_.rest(self.network);
  const auto leave = [&] {
    g->give_hand(*mine);
    g->leave();
  };
  try {
    run_nodes(self, *g, *mine, false);
  } catch (...) {
    leave();
    throw;
  }
  leave();
  return true;
}

// Wakes threads that are missing beside this one, which has just come, or come back, and is about to take a node: one
// thread may have made nodes for many ready, and has called one other.
void group_actor::call_missing(graph_run& g) {
  g.begin_look();
  const auto here = static_cast<std::size_t>(parking_.sleepers());
  if (const std::size_t more = g.call_more(wake_worth_ticks(), here + parking::wakes_of_one); more != 0) {
    wake(std::min(more, here), parking::nearness::far);
    if (more > here) runs_.call_others(g, options_.facts.id, more - here);
  }
  g.end_look();
}

// Wakes a thread for nodes that nobody comes for: one of this group, else of another one in the run's scope.
void group_actor::call_for_nodes(graph_run& g) {
  if (parking_.sleepers() != 0)
    wake(1, parking::nearness::far);
  else
    runs_.call_others(g, options_.facts.id, 1);
}

// Takes the next node of the run for this thread, and looks for one a while. What other parts of the graph send is
// taken in by the thread that looks: the network's own would have to wake it.
bool group_actor::next_node(worker& self, graph_run& g, graph_run::hand& mine, std::uint32_t& node) {
  // Where threads share cores, one that looks keeps another one from its nodes.
  const std::uint64_t limit = is_over_quota() ? 0 : placement_.active() > usable_cores_ ? spin_ticks_ : longest_look();
  if (!g.graph.part) return g.next(mine, node, limit);
  if (g.next(mine, node, 0)) {
    if (self.network.polls)
      outside_.begins(self.network, 1,
                      g.graph.node_ticks.load(std::memory_order_relaxed) * static_cast<float>(tick_ns_), moment_ns(),
                      ticks());
    return true;
  }
  g.begin_look();
  const bool found = look_for_node(self, g, mine, node, limit);
  g.end_look();
  if (!found && !g.is_over()) outside_.rest(self.network);
  return found;
}

// Looks so long for a node of a part of a graph, while the thread is counted as one that does.
bool group_actor::look_for_node(worker& self, graph_run& g, graph_run::hand& mine, std::uint32_t& node,
                                std::uint64_t limit) {
  const std::uint64_t since = ticks();
  for (int look = 1; !g.is_over() && ticks() - since < limit; ++look) {
    if (!outside_.poll(self.network, ticks(), since)) spin_lock::pause();
    if (g.next(mine, node, 0)) return true;
    if (look % looks_between_yields == 0) std::this_thread::yield();  // the network's own thread may need this core
  }
  return false;
}

// Waits for nodes that other threads have, without a slot: they may be waiting for this thread's.
void group_actor::await_nodes(worker& self, graph_run& g) {
  // Boxes of other parts may come after tasks that placement would not give to cores whose slots are in use.
  const bool for_others = g.graph.part != nullptr;
  const worker::standing body = self.body();
  if (for_others) note_waiting(body, 1);
  leave_slots(self);
  if (!g.has_shared()) g.await_more();
  come_back(self);
  if (!g.is_over()) call_missing(g);
  if (for_others) note_waiting(body, -1);
}

// True if a thread that has joined a run is to leave it, for a task of a higher priority that waits. The owner cannot:
// it has another thread come for the task, unless one that has joined should have done so.
bool group_actor::is_to_leave(worker& self, const graph_run& g, bool owner) {
  if (!g.task || !queue_.is_overtaken(*g.task)) {
    self.overtaken = false;
    return false;
  }
  if (!owner) return true;
  if (std::exchange(self.overtaken, true) || options_.facts.slots == 1) stand_aside(self, g);
  return false;
}

// Lends this thread's slot to another one, until that has run something; not once the run is over.
void group_actor::stand_aside(worker& self, const graph_run& g) {
  const bool may = parking_.may_stand_aside(self.parking_state);
  make_spares(parking_.spares_due());
  if (!may) return;
  put_down(self);
  if (!g.is_over()) make_spares(parking_.stand_aside());
  self.show_slots(true);
  take_up(self);
}

// Ends a thread's part in a graph's run after a body has ended the thread: the owner of the run stays until it is over,
// threads that joined leave the rest to others.
void group_actor::finish_run(worker& self, graph_run& g, graph_run::hand& mine, bool owner) {
  if (!owner) {
    lay_out_hands(self);
    return;
  }
  const float worth = wake_worth_ticks();
  for (std::uint32_t node; !g.is_over();)
    if (next_node(self, g, mine, node))
      g.finished(mine, node, self.run_node(g, node), worth);
    else if (!g.is_over())
      await_nodes(self, g);
}

void group_actor::run_nodes(worker& self, graph_run& g, graph_run::hand& mine, bool owner) {
  mine.outer = std::exchange(self.hands, &mine);
  mine.looks = &self.parking_state.looks;
  const float worth = wake_worth_ticks();  // once: a node may take less than to work it out
  if (owner) self.overtaken = false;
  for (std::uint32_t node;;) {
    if (next_node(self, g, mine, node)) {
      bool fine = false;
      try {
        fine = self.run_node(g, node);
      } catch (...) {  // the thread ends, but the nodes that it has taken are no other thread's
        g.finished(mine, node, false, worth);
        finish_run(self, g, mine, owner);
        self.hands = mine.outer;
        throw;
      }
      if (g.finished(mine, node, fine, worth) == graph_run::wake_hint::nodes_for_others) call_for_nodes(g);
      if (g.is_awaited() || ++self.minding.nodes >= nodes_between_looks) move_stuck(self);
      if (!parking_.slot_wanted() && !is_to_leave(self, g, owner)) continue;
      // A body that has waited goes on first, and so does a task of a higher priority, as between plain tasks.
      g.lay_out(mine);
      if (!owner) break;
    } else if (!owner || g.is_over()) {
      break;
    }
    if (g.is_over()) break;
    await_nodes(self, g);
  }
  self.hands = mine.outer;
  self.search.ran_graph = true;
}

}  // namespace troupe::detail
