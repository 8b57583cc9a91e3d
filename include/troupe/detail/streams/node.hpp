// What this file is for: what stages of a stream are made of, and the plan in which they are joined before it starts.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not for users.
//
// A node is a stage. It has ports, through which items come in, and outlets, through which they go on. When the stream
// starts, each outlet is either fused with the stage behind it, so that items are passed on by a call, or an edge is
// put between the two. A node has as many lanes as calls of it may run at the same time; each lane belongs to one
// strand.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <troupe/detail/streams/edge.hpp>
#include <troupe/detail/streams/state.hpp>
#include <troupe/detail/streams/strand.hpp>
#include <troupe/stream/item.hpp>
#include <troupe/stream/report.hpp>

namespace troupe::detail::streams {

/// Where items of one type go in. Used by one strand.
template <class T>
class inlet {
 public:
  virtual ~inlet() = default;
  /// Takes an item; called only after the last call has returned another demand than `none`, or `resume` has.
  virtual demand push(T&& item, const origin&) = 0;
  /// Takes a mark, under the same condition.
  virtual demand pass(const mark&) = 0;
  /// Goes on with what had to wait; `none`: there is still no room, or a time has not come.
  virtual demand resume() = 0;
  /// Nothing more waits to come in at the moment.
  virtual void idle() = 0;
  /// Nothing will come any more: passes on what is held. False: it has to be called again once `resume` allows it.
  virtual bool finish() = 0;
};

/// Counts of one lane of a stage.
struct counts {
  tally in, out, created, absorbed, dropped, late, ahead, dead, retries, held;
  troupe::stream::recorder service;
  std::optional<troupe::stream::recorder> transfer{};  // of stages whose work may need copies
  std::atomic<std::int64_t> reached_ns{mark::never};   // of event time: by marks
  void note(const mark& m) { reached_ns.store(m.event_ns, std::memory_order_relaxed); }
  void add_to(troupe::stream::stage_report& r) const {
    r.in += in.get();
    r.out += out.get();
    r.created += created.get();
    r.absorbed += absorbed.get();
    r.dropped += dropped.get();
    r.late += late.get();
    r.ahead += ahead.get();
    r.dead += dead.get();
    r.retries += retries.get();
    r.held += held.get();
    r.service += service.read();
    if (transfer) r.transfer += transfer->read();
    const std::int64_t ns = reached_ns.load(std::memory_order_relaxed);
    if (ns == mark::never) return;
    const troupe::stream::event_point at{std::chrono::nanoseconds(ns)};
    r.watermark = r.watermark ? std::min(*r.watermark, at) : at;
  }
};

class node;

/// One end of a connection: what comes out of a node.
class outlet_base {
 public:
  virtual ~outlet_base() = default;
  /// Passes items on by a call. For nodes with one lane on both sides.
  virtual void fuse() = 0;
  /// Passes items of each lane on to the edge; `keeps_order`: in the order in which the lanes took what they come from.
  virtual void connect(edge_base&, const std::vector<strand*>& lanes, bool keeps_order) = 0;

  node* from = nullptr;
  node* to = nullptr;
  int port = 0;
  bool has_edge = false;                ///< asked for
  bool keeps_latest = false;            ///< of a key, in that edge
  troupe::stream::edge_options edge{};  ///< where that was asked for
};

/// A stage of any types.
class node {
 public:
  node(std::string name, const char* kind) : name_(std::move(name)), kind_(kind), serial_(++made) {}
  virtual ~node() = default;
  node(const node&) = delete;
  node& operator=(const node&) = delete;

  const std::string& name() const { return name_; }
  /// Which one it is of all that this process has made; later ones have larger numbers.
  std::uint64_t serial() const { return serial_; }
  static std::uint64_t last_serial() { return made.load(); }
  /// Before the stream starts.
  void rename(std::string to) { name_ = std::move(to); }
  const char* kind() const { return kind_; }

  /// Makes the strand of a source; null: it is none.
  virtual std::unique_ptr<strand> make_source() { return nullptr; }
  /// Makes an edge in front of a port.
  virtual std::unique_ptr<edge_base> make_edge(int port, const troupe::stream::edge_options&) = 0;
  /// Bytes that each item of that port counts as; 0: items differ.
  virtual std::size_t item_bytes(int) const { return 0; }
  /// Makes the strand of a lane that takes from edges, one for each port.
  virtual std::unique_ptr<strand> make_strand(int lane, const std::vector<edge_base*>&) = 0;
  /// Tells a lane which strand it belongs to.
  virtual void bind(int lane, strand&) = 0;
  virtual void add_to(troupe::stream::stage_report&) const = 0;
  /// True for a stage whose ports all need edges: its strand chooses from which it takes.
  virtual bool joins() const { return false; }
  /// True for a stage that takes items of several ways one for one: were one of them to wait at a barrier, none could
  /// come to it.
  virtual bool pairs_items() const { return false; }
  bool has_bars = true;  ///< its ways wait for each other at a barrier
  /// For threads outside that push: the edge where their items wait; the way in is shut.
  virtual edge_base* own_edge() { return nullptr; }
  virtual const std::type_info* item_type() const { return nullptr; }
  virtual void shut() {}
  /// For sources and inputs: a barrier goes behind what they have pushed until now. Any thread; the strand is told.
  virtual void begin_barrier(std::uint64_t) {}
  /// For sinks: the last barrier that has come to all of its lanes. Any thread.
  virtual std::uint64_t barrier_passed() const { return std::numeric_limits<std::uint64_t>::max(); }
  /// For sinks: called with each barrier that comes, by the strand. Before the stream starts.
  std::function<void(std::uint64_t)> at_barrier;
  /// For stages whose work is tasks: where they run. Before the stream starts.
  virtual void attach(engine&) {}
  /// The stream ends early: tasks that have not begun are to be left out. Any thread.
  virtual void stop_tasks() noexcept {}
  /// So many stages are there, for the share of items that are timed.
  virtual void set_stages(int) {}
  /// Items that a source has pushed into the stream here; for an input its edge knows.
  virtual std::uint64_t pushed() const { return 0; }
  /// Items that have left the stream here, delivered; their latencies.
  virtual std::uint64_t delivered() const { return 0; }
  virtual troupe::stream::distribution latency() const { return {}; }

  troupe::stream::stage_options options{};
  std::vector<std::vector<outlet_base*>> ports;  ///< what each port is fed by
  std::vector<outlet_base*> outlets;
  const edge_base* edge_before = nullptr;  ///< of a stage with several lanes; once it is planned
  std::vector<strand*> strands;            ///< one for each lane, once it is planned
  state_budget* state = nullptr;           ///< for what it keeps; once it is planned

 private:
  static inline std::atomic<std::uint64_t> made{0};
  std::string name_;
  const char* const kind_;
  const std::uint64_t serial_;
};

/// For `node::item_bytes`.
template <class T>
inline constexpr std::size_t fixed_item_bytes = counts_as_its_size<T> ? sizeof(T) : 0;

/// What a stream is made of, before it starts and while it runs. Flows that are joined have one plan from then on.
struct plan {
  state_budget state;
  std::vector<std::unique_ptr<node>> nodes;  ///< each behind those that feed it
  std::vector<std::unique_ptr<edge_base>> edges;
  std::vector<std::unique_ptr<strand>> strands;
  std::shared_ptr<plan> joined;  ///< with that one, which has all now
  bool started = false;
};

/// Where items of a node wait for the strand of another one. One for each lane that pushes.
template <class T>
class entry final : public inlet<T> {
 public:
  entry(edge<T>& to, strand& from) : to_(to), mark_(to.open()) { me_.who = &from; }
  demand push(T&& item, const origin& from) override { return offer(std::move(item), from, item_bytes_of(item)); }
  demand resume() override {
    if (!kept_) return to_.has_room(me_, mark_) ? demand::more : demand::none;
    std::unique_ptr<held<T>> again = std::move(kept_);
    return offer(std::move(again->value), again->from, again->bytes, true);
  }
  demand pass(const mark& m) override {
    to_.put(mark_, m);
    return to_.has_room(me_, mark_) ? demand::more : demand::none;
  }
  void idle() override {}
  bool finish() override {
    if (!std::exchange(closed_, true)) to_.close(mark_);
    return true;
  }

 private:
  static std::size_t item_bytes_of(const T& item) { return troupe::stream::item_bytes<T>::of(item); }
  demand offer(T&& item, const origin& from, std::size_t bytes, bool was_parked = false) {
    demand next;
    switch (to_.offer(item, from, bytes, &me_, was_parked, next)) {
      case received::yes:
        return next;
      case received::no:
        kept_ = std::make_unique<held<T>>(held<T>{std::move(item), from, bytes});
        return demand::none;
      case received::overrun:
        me_.who->home->fail(std::make_exception_ptr(
            error(errc::overrun, "there is no room before stage '" + to_.to() + "', and its edge is to fail then")));
        return demand::none;
      case received::failed:
        me_.who->home->fail(to_.to().c_str(), from.number, 1, to_.fault());
        return demand::none;
      case received::closed:
        break;
    }
    return demand::none;
  }
  edge<T>& to_;
  const std::size_t mark_;
  waiter me_;
  std::unique_ptr<held<T>> kept_;
  bool closed_ = false;
};

/// The same for a lane of a stage that runs in parallel and keeps the order: what comes of an item has its place.
template <class T>
class ordered_entry final : public inlet<T> {
 public:
  ordered_entry(edge<T>& to, strand& from) : to_(to), mark_(to.open()) { me_.who = &from; }
  edge<T>& to() { return to_; }
  waiter& me() { return me_; }
  /// The next item that is pushed has that place.
  void begin(std::uint64_t place) {
    place_ = place;
    is_due_ = true;
  }
  /// What has been begun has come to its end.
  void settle() {
    if (std::exchange(is_due_, false)) to_.skip(place_);
  }
  demand push(T&& item, const origin& from) override {
    const std::size_t bytes = item_bytes_of(item);
    is_due_ = false;
    if (to_.fill(place_, item, from, bytes, me_, false)) return demand::more;
    kept_ = std::make_unique<held<T>>(held<T>{std::move(item), from, bytes});
    return demand::none;
  }
  demand resume() override {
    if (!kept_) return waits_for_barrier();
    if (!to_.fill(place_, kept_->value, kept_->from, kept_->bytes, me_, true)) return demand::none;
    kept_.reset();
    return demand::more;
  }
  demand pass(const mark& m) override {
    to_.put(mark_, m);
    return waits_for_barrier();
  }
  void idle() override {}
  bool finish() override {
    if (!std::exchange(closed_, true)) to_.close(mark_);
    return true;
  }

 private:
  static std::size_t item_bytes_of(const T& item) { return troupe::stream::item_bytes<T>::of(item); }
  // Its places are reserved, whatever room there is.
  demand waits_for_barrier() { return to_.is_barred(me_, mark_) ? demand::none : demand::more; }
  edge<T>& to_;
  const std::size_t mark_;
  waiter me_;
  std::uint64_t place_ = 0;
  bool is_due_ = false, closed_ = false;
  std::unique_ptr<held<T>> kept_;
};

/// A port of a node: one inlet for each lane.
template <class T>
class port_base {
 public:
  virtual inlet<T>& at(int lane) = 0;

 protected:
  ~port_base() = default;
};

/// An outlet for items of one type.
template <class T>
class outlet final : public outlet_base {
 public:
  void fuse() override { next.assign(1, &target->at(0)); }
  void connect(edge_base& e, const std::vector<strand*>& lanes, bool keeps_order) override {
    auto& typed = static_cast<streams::edge<T>&>(e);
    if (same) typed.keep_latest(std::move(same));
    for (strand* s : lanes) {
      if (keeps_order) {
        auto way = std::make_unique<ordered_entry<T>>(typed, *s);
        ordered.push_back(way.get());
        next.push_back(way.get());
        own_.push_back(std::move(way));
      } else {
        own_.push_back(std::make_unique<entry<T>>(typed, *s));
        next.push_back(own_.back().get());
      }
    }
  }
  inlet<T>& of(int lane) { return *next[static_cast<std::size_t>(lane)]; }

  port_base<T>* target = nullptr;
  std::function<bool(const T&, const T&)> same;  ///< of the edge behind, where it keeps the latest
  std::vector<inlet<T>*> next;                   ///< of each lane
  std::vector<ordered_entry<T>*> ordered;        ///< of each lane, where the order is kept

 private:
  std::vector<std::unique_ptr<inlet<T>>> own_;
};

}  // namespace troupe::detail::streams
