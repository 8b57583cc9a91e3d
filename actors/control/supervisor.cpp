// What this file is for: the supervisor: which actors have failed, and what is done about it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/control/supervisor.hpp"

#include <unordered_map>
#include <utility>

namespace troupe::detail {

// ---- the desk -------------------------------------------------------------------------------------------------------

std::size_t supervision_desk::add(std::weak_ptr<actor> who) {
  const std::shared_ptr<actor> a = who.lock();
  std::lock_guard hold(lock_);
  watched& w = all_.emplace_back();
  w.who = std::move(who);
  w.kind = a->kind();
  w.label = a->label();
  news_.added.push_back(all_.size() - 1);
  return all_.size() - 1;
}

std::size_t supervision_desk::add(actor_kind k, std::string label) {
  std::lock_guard hold(lock_);
  watched& w = all_.emplace_back();
  w.kind = k;
  w.label = std::move(label);
  return all_.size() - 1;
}

void supervision_desk::note_reason(std::size_t number, std::exception_ptr why) {
  std::lock_guard hold(lock_);
  all_[number].why = std::move(why);
}

void supervision_desk::note_failure(std::size_t number, std::exception_ptr why) {
  std::lock_guard hold(lock_);
  all_[number].why = std::move(why);
  news_.failed.push_back(number);
}

supervision_desk::news supervision_desk::take_news() {
  std::lock_guard hold(lock_);
  return std::exchange(news_, {});
}

verdict supervision_desk::count_failure(std::size_t number) {
  std::lock_guard hold(lock_);
  watched& w = all_[number];
  w.what = w.withdrawing ? verdict::end_runtime : verdict_on(w.kind, ++w.failures);
  return w.what;
}

void supervision_desk::note_withdrawing(std::size_t number, bool is) {
  std::lock_guard hold(lock_);
  all_[number].withdrawing = is;
}

supervision_desk::watched supervision_desk::get(std::size_t number) const {
  std::lock_guard hold(lock_);
  return all_[number];
}

namespace {

// ---- a controller ---------------------------------------------------------------------------------------------------

controller_actor::behavior_type controller(controller_actor::pointer self, supervision_desk* desk, std::size_t number) {
  begin(self, [=](const std::exception_ptr& why) { desk->note_reason(number, why); });
  return {
      [=](actor_failed) { self->quit(caf::make_error(caf::sec::runtime_error, "the actor has failed")); },
      [=](act_on_verdict) {
        const supervision_desk::watched w = desk->get(number);
        const std::shared_ptr<actor> who = w.who.lock();
        if (!who) return;
        desk->act([&] {
          if (w.what == verdict::restart) return who->restart();
          desk->note_withdrawing(number, true);
          who->withdraw(w.why);
          desk->note_withdrawing(number, false);
        });
      },
  };
}

// ---- the supervisor -------------------------------------------------------------------------------------------------

const char* words_for(verdict v) {
  switch (v) {
    case verdict::restart:
      return "it is restarted";
    case verdict::withdraw:
      return "it is given up";
    case verdict::end_runtime:
      break;
  }
  return "the runtime ends";
}

struct supervisor_state {
  supervision_desk* desk = nullptr;
  const control_options* options = nullptr;
  std::vector<system_actor> below;
  std::unordered_map<std::size_t, controller_actor> controllers;  // by number
  std::unordered_map<caf::actor_addr, std::size_t> numbers;       // of all that are monitored
};
using supervisor_pointer = supervisor_actor::stateful_pointer<supervisor_state>;

const system_actor* find_below(const supervisor_state& s, std::size_t number) {
  for (const system_actor& b : s.below)
    if (b.number == number) return &b;
  return nullptr;
}

void watch_below(supervisor_pointer self, std::size_t number, const caf::actor& a) {
  self->monitor(a);
  self->state.numbers.emplace(a.address(), number);
}

void start_controller(supervisor_pointer self, std::size_t number) {
  const controller_actor c = self->spawn<caf::monitored>(controller, self->state.desk, number);
  self->state.numbers.emplace(c.address(), number);
  self->state.controllers.insert_or_assign(number, c);
}

// Carries out the verdict on an actor whose controller has ended, or on one of the system that has.
void handle_down(supervisor_pointer self, const caf::down_msg& m) {
  supervisor_state& s = self->state;
  const auto found = s.numbers.find(m.source);
  if (found == s.numbers.end()) return;
  const std::size_t number = found->second;
  s.numbers.erase(found);
  verdict v{};
  s.desk->act([&] {
    v = s.desk->count_failure(number);
    const supervision_desk::watched w = s.desk->get(number);
    if (s.options->remark)
      s.options->remark(w.label + " has failed (" + std::to_string(w.failures) + "): " + text_of(w.why) + "; " +
                        words_for(v));
    if (v == verdict::end_runtime) {
      s.options->end_runtime(w.label, w.why);
      return;
    }
    if (const system_actor* const b = find_below(s, number)) {
      const caf::actor a = v == verdict::restart ? b->spawn(self->system()) : caf::actor();
      if (a) watch_below(self, number, a);
      return b->spawned(a, false);
    }
    start_controller(self, number);
    self->send(s.controllers.at(number), act_on_verdict{});
  });
}

supervisor_actor::behavior_type supervisor(supervisor_pointer self, supervision_desk* desk, const control_options* o,
                                           std::vector<system_actor> below, std::vector<caf::actor> first) {
  self->state.desk = desk;
  self->state.options = o;
  self->state.below = std::move(below);
  begin(self, [=](const std::exception_ptr& why) { o->end_runtime("supervisor", why); });
  self->set_down_handler([self](const caf::down_msg& m) { handle_down(self, m); });
  for (std::size_t i = 0; i < first.size(); ++i) watch_below(self, self->state.below[i].number, first[i]);
  return {[self](desk_changed) {
    const supervision_desk::news news = self->state.desk->take_news();
    for (const std::size_t number : news.added) start_controller(self, number);
    for (const std::size_t number : news.failed) self->send(self->state.controllers.at(number), actor_failed{});
  }};
}

}  // namespace

supervisor_actor start_supervisor(caf::actor_system& system, supervision_desk& desk, const control_options& o,
                                  std::vector<system_actor> below) {
  std::vector<caf::actor> first;
  for (const system_actor& b : below) {
    first.push_back(b.spawn(system));
    b.spawned(first.back(), true);
  }
  return system.spawn(supervisor, &desk, &o, std::move(below), std::move(first));
}

}  // namespace troupe::detail
