// What this file is for: dials an address: control first, then bulk, then there is a session.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/tcp/dialling.hpp"

#include <chrono>
#include <cstring>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include <troupe/error.hpp>

namespace troupe::net::tcp {

namespace {

/// For the number of a session; 0 means none.
std::uint64_t random_number() {
  const node_id id = node_id::random();
  std::uint64_t n = 0;
  std::memcpy(&n, id.bytes.data(), sizeof n);
  return n == 0 ? 1 : n;
}

std::exception_ptr refusal(const endpoint& where, const std::string& why) {
  return std::make_exception_ptr(error(errc::refused, where.text() + " does not admit this node: " + why));
}

}  // namespace

class dialling::attempt : public std::enable_shared_from_this<attempt> {
 public:
  attempt(dialling& all, endpoint where, std::shared_ptr<session> instead)
      : all_(all), door_(all.door_), where_(std::move(where)), instead_(std::move(instead)) {}

  void found(std::vector<address> addresses) {
    addresses_ = std::move(addresses);
    next_address();
  }
  void failed(std::exception_ptr why) {
    if (drop()) door_.events.refused(where_, std::move(why));
  }
  /// False if it has ended before.
  bool drop() {
    const auto self = shared_from_this();
    if (all_.attempts_.erase(self) == 0) return false;
    for (auto* t : {&control_, &bulk_}) {
      if (*t) (*t)->drop();
    }
    if (peer_) door_.sessions.rules().gave_up(peer_->id, number_);
    return true;
  }

 private:
  void next_address() {
    const address a = addresses_[next_++];
    if (door_.proof == nullptr && !a.loopback())
      return failed(std::make_exception_ptr(
          error(errc::bad_argument, "without credentials only loopback addresses may be dialled, not " + where_.text() +
                                        ": give a cluster secret or certificates")));
    open(control_, a, channel::control, [this] { control_answer(); });
  }

  /// Connects, shakes hands, says hello and reads the answer into `answer_`.
  void open(std::shared_ptr<talk>& t, const address& a, channel kind, talk::next then) {
    try {
      t = door_.open(door_.control, connect_to(a), a, true);
    } catch (...) {
      return unreachable(std::current_exception());
    }
    const auto self = shared_from_this();
    t->begin(door_.deadline(), false, [self](std::exception_ptr why) { self->unreachable(std::move(why)); });
    t->connected([self, &t, kind, then] { t->handshake([self, &t, kind, then] { self->say_hello(*t, kind, then); }); });
  }

  void say_hello(talk& t, channel kind, talk::next then) {
    if (const std::string no = door_.objection(t); !no.empty()) return failed(refusal(where_, no));
    hello h{.kind = kind, .number = number_, .who = door_.self, .takes = door_.takes()};
    if (kind == channel::bulk) {
      // While this connection was opened the other side may have come in by one of its own.
      if (!door_.sessions.rules().wanted(peer_->id, number_)) return superseded();
      h.last = door_.sessions.rules().last(peer_->id);
    }
    t.write(encode(h), [self = shared_from_this(), &t, then] {
      t.read([self, &t, then](std::span<const std::byte> message) { self->answered(t, message, then); });
    });
  }

  void answered(talk& t, std::span<const std::byte> message, const talk::next& then) {
    try {
      answer_ = decode_answer(message);
    } catch (...) {
      return failed(std::current_exception());
    }
    if (answer_.what == hello_result::other_version && answer_.text.empty())
      answer_.text = "it speaks version " + std::to_string(answer_.version) + " of the protocol, this node version " +
                     std::to_string(protocol_version);
    if (answer_.what == hello_result::welcome) door_.bind_name(answer_.who, t);
    if (answer_.what == hello_result::duplicate) return superseded();
    if (answer_.what == hello_result::yourself) return itself();
    if (answer_.what != hello_result::welcome) return failed(refusal(where_, answer_.text));
    if (answer_.who.cluster != door_.self.cluster)
      return failed(refusal(where_, "it belongs to cluster " + answer_.who.cluster));
    then();
  }

  void itself() {
    failed(std::make_exception_ptr(dial_error(dial_error::reason::self,
                                              where_.text() + " does not admit this node: that is this process itself",
                                              door_.self.id)));
  }

  /// As long as both are there, the first one has the name and the id.
  void control_answer() {
    door_.sessions.when_free(
        answer_.who, control_->peer().told(), replaced_or_last(), [self = shared_from_this()](const std::string& why) {
          if (!self->all_.attempts_.contains(self)) return;  // it has ended meanwhile
          if (why.empty()) return self->control_agreed();
          const std::string who = self->answer_.who.name;
          self->failed(std::make_exception_ptr(
              error(errc::refused, self->where_.text() + " was not admitted as node " + who + ": " + why)));
        });
  }

  void control_agreed() {
    const hello_result v = door_.sessions.rules().dialled(answer_.who, number_, replaced());
    if (v == hello_result::yourself) return itself();
    if (v == hello_result::outdated)
      return failed(refusal(where_, "a later incarnation of that process has been seen"));
    if (v == hello_result::duplicate) return superseded();
    peer_ = answer_.who;
    open(bulk_, control_->peer(), channel::bulk, [this] { bulk_answer(); });
  }

  /// The number of the session that this one is to replace; 0: none, or it has said something since.
  std::uint64_t replaced() const {
    const auto* const old = dynamic_cast<const tcp_session*>(instead_.get());
    return old != nullptr && old->peer().id == answer_.who.id && old->heard() < began_ ? old->agreed().number : 0;
  }

  /// A session with that process, which is no other one then.
  std::optional<std::uint64_t> replaced_or_last() const {
    if (const std::uint64_t old = replaced(); old != 0) return old;
    return door_.sessions.number_of(answer_.who);
  }

  void bulk_answer() {
    const bool first = door_.sessions.rules().confirmed(*peer_, number_);
    const auto self = shared_from_this();
    if (!first || answer_.who.id != peer_->id) return superseded();
    all_.attempts_.erase(self);
    door_.admit(*peer_, answer_.takes, number_, where_, control_->peer().told(), {control_->take(), bulk_->take()});
  }

  /// Ends the dial: another session with the same process is there, or will be; only if there is none in the end is
  /// anything told.
  void superseded() {
    const auto self = shared_from_this();
    const node_id who = peer_ ? peer_->id : answer_.who.id;
    const bool known = peer_ || answer_.what == hello_result::welcome;
    if (!drop() || !known || door_.sessions.rules().has(who)) return;
    door_.control.at(door_.deadline(), [alive = std::weak_ptr(all_.way_back_), &door = door_, where = where_, who] {
      if (alive.expired() || door.sessions.rules().has(who)) return;
      door.events.refused(where, refusal(where, "it said that there is a session already, but none came"));
    });
  }

  void unreachable(std::exception_ptr why) {
    if (!peer_ && next_ < addresses_.size() && all_.attempts_.contains(shared_from_this())) {
      try {
        std::rethrow_exception(why);
      } catch (const error& e) {
        if (e.code() == errc::unreachable) return next_address();
      }
    }
    failed(std::move(why));
  }

  dialling& all_;
  const doorway& door_;
  const endpoint where_;
  const std::shared_ptr<session> instead_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  const std::uint64_t number_ = random_number();
  std::vector<address> addresses_;
  std::size_t next_ = 0;
  std::shared_ptr<talk> control_, bulk_;
  answer answer_;
  std::optional<identity> peer_;
};

struct dialling::way_back {
  std::mutex lock;
  loop* to;

  void post(std::function<void()> f) {
    const std::lock_guard hold(lock);
    if (to != nullptr) to->post(std::move(f));
  }
};

dialling::dialling(const doorway& d) : door_(d), way_back_(std::make_shared<way_back>()) { way_back_->to = &d.control; }

dialling::~dialling() { end(); }

void dialling::dial(const endpoint& where, std::shared_ptr<session> instead) {
  const auto a = std::make_shared<attempt>(*this, where, std::move(instead));
  attempts_.insert(a);
  const std::weak_ptr which(a);
  look_up(
      where,
      [back = way_back_, which](std::vector<address> found) {
        back->post([which, found = std::move(found)] {
          if (const auto still = which.lock()) still->found(found);
        });
      },
      [back = way_back_, which](std::exception_ptr why) {
        back->post([which, why] {
          if (const auto still = which.lock()) still->failed(why);
        });
      });
}

void dialling::end() {
  if (!way_back_) return;
  {
    const std::lock_guard hold(way_back_->lock);
    way_back_->to = nullptr;
  }
  way_back_.reset();
  const auto all = attempts_;
  for (const auto& a : all) a->drop();
}

}  // namespace troupe::net::tcp
