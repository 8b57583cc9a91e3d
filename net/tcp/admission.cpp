// What this file is for: accepts connections and admits processes that prove to be members.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   stranger -> handshake -> hello -> control: welcome, waits for its bulk connection
//                                  -> bulk: welcome, both become a session
#include "net/tcp/admission.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <troupe/error.hpp>

namespace troupe::net::tcp {

namespace {

constexpr int accepts_a_turn = 64;
constexpr std::chrono::milliseconds pause_without_descriptors{100};

int reserve_descriptor() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }

const char* words(hello_result v) {
  switch (v) {
    case hello_result::yourself:
      return "that is this process itself";
    case hello_result::duplicate:
      return "there is a session with this process already, or one is about to be";
    case hello_result::outdated:
      return "a later incarnation of this process is known here: start it anew";
    default:
      return "refused";
  }
}

}  // namespace

admission::admission(const doorway& d, listeners& l) : door_(d), listeners_(l), reserve_(reserve_descriptor()) {}

admission::~admission() {
  if (reserve_ >= 0) ::close(reserve_);
}

void admission::begin() {
  for (std::size_t i = 0; i < listeners_.sockets().size(); ++i) {
    watches_.push_back(std::make_unique<watch>(door_.bulk, listeners_.sockets()[i]));
    wait_for(i);
  }
}

void admission::end() {
  ended_ = true;
  watches_.clear();
  listeners_.close();
  for (auto& [address, t] : waiting_) t->drop();
  halves_.clear();
  joining_.clear();
  waiting_.clear();
  strangers_.clear();
  waiting_each_.clear();
}

void admission::wait_for(std::size_t which) {
  watches_[which]->readable([this, which] { accept_some(which); });
}

void admission::accept_some(std::size_t which) {
  const int listening = listeners_.sockets()[which];
  for (int i = 0; i < accepts_a_turn; ++i) {
    address from;
    from.size = sizeof from.bytes;
    const int s = ::accept4(listening, from.raw(), &from.size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (s >= 0) {
      greet(s, from);
      continue;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) break;
    if (!out_of_descriptors(listening, errno)) continue;  // that connection broke before it was taken
    // Tried again at once it would fail again, and the socket stays readable: that would be a busy loop.
    door_.bulk.at(std::chrono::steady_clock::now() + pause_without_descriptors, [this, which] {
      if (!ended_) accept_some(which);
    });
    return;
  }
  wait_for(which);
}

bool admission::out_of_descriptors(int listening, int code) {
  if (code != EMFILE && code != ENFILE && code != ENOBUFS && code != ENOMEM) return false;
  // The connection that waits longest hears that it is not taken, instead of nothing.
  if (reserve_ >= 0) {
    ::close(reserve_);
    const int s = ::accept4(listening, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (s >= 0) ::close(s);
  }
  reserve_ = reserve_descriptor();
  return true;
}

// Strangers that hold all places without proving anything give them up to the next ones: a member has shown what it is
// long before as many others have come. Strangers that keep coming from one neighbourhood take each other's places
// only.
void admission::greet(int socket, const address& from) {
  const std::string where = from.neighbourhood();
  const auto there = waiting_each_.find(where);
  const bool many_there = there != waiting_each_.end() && there->second >= door_.options.waiting_each_max;
  const bool is_wanted = door_.proof != nullptr || from.loopback();
  if (!is_wanted || (many_there && !send_away_oldest(where)) ||
      (static_cast<int>(waiting_.size()) >= door_.options.waiting_max && !send_away_oldest(""))) {
    ::close(socket);
    return;
  }
  tune(socket);
  const auto t = door_.open(door_.bulk, socket, from, false);
  ++waiting_each_[where];
  waiting_.emplace(t.get(), t);
  strangers_.push_back({t.get(), where});
  t->begin(door_.deadline(), true, [this, who = t.get()](std::exception_ptr) { forget(who); });
  t->handshake([this, who = t.get()] {
    const auto self = waiting_.at(who);
    if (std::string no = door_.objection(*who); !no.empty())
      return refuse(self, hello_result::no_member, "not admitted to cluster " + door_.self.cluster + ": " + no);
    if (door_.proof != nullptr) known(who);
    who->read([this, self](std::span<const std::byte> message) { heard(self, message); });
  });
}

bool admission::send_away_oldest(const std::string& from) {
  const auto oldest =
      std::ranges::find_if(strangers_, [&](const stranger& s) { return from.empty() || s.from == from; });
  if (oldest == strangers_.end()) return false;
  const auto t = waiting_.at(oldest->who);
  t->drop();
  forget(t.get());
  return true;
}

void admission::known(talk* who) {
  strangers_.remove_if([&](const stranger& s) { return s.who == who; });
}

void admission::heard(const std::shared_ptr<talk>& t, std::span<const std::byte> message) {
  hello h;
  try {
    h = decode_hello(message);
  } catch (const error& malformed) {
    return refuse(t, hello_result::no_member, malformed.what());
  }
  judge(t, h);
}

void admission::judge(const std::shared_ptr<talk>& t, const hello& said) {
  hello h = said;
  door_.bind_name(h.who, *t);
  if (h.version != protocol_version)
    return refuse(t, hello_result::other_version,
                  "it speaks version " + std::to_string(protocol_version) + " of the protocol, not " +
                      std::to_string(h.version) + ": all nodes need the same version of troupe");
  if (h.who.cluster != door_.self.cluster)
    return refuse(t, hello_result::other_cluster,
                  "it belongs to cluster " + door_.self.cluster + ", not to " + h.who.cluster);
  // This node has no session with itself, by which the roster would know that its own name is held.
  if (!h.who.name.empty() && h.who.name == door_.own_name(*t) && h.who.id != door_.self.id) {
    const std::string why =
        "another node with the name " + h.who.name + " is there, the one it asked: give each its own";
    door_.control.post([this, why, name = h.who.name, remote = t->peer().told()] {
      door_.events.turned_away(
          remote, std::make_exception_ptr(error(errc::refused, "node " + name + " was not admitted: " + why)));
    });
    return refuse(t, hello_result::taken, why);
  }
  door_.control.post([this, waits = std::weak_ptr(t), h, remote = t->peer().told()] {
    // Nothing is agreed on by the first connection, and a peer that has dialled while a session came about is told so.
    if (h.kind == channel::control || door_.sessions.rules().asked(h) != hello_result::welcome) return rule(waits, h);
    door_.sessions.when_free(h.who, remote, h.last, [this, waits, h, remote](const std::string& why) {
      if (why.empty()) return rule(waits, h);
      door_.events.turned_away(
          remote, std::make_exception_ptr(error(errc::refused, "node " + h.who.name + " was not admitted: " + why)));
      door_.bulk.post([this, waits, why] {
        if (const auto still = waits.lock(); still && waiting_.contains(still.get()))
          refuse(still, hello_result::taken, why);
      });
    });
  });
}

void admission::rule(const std::weak_ptr<talk>& waits, const hello& h) {
  const hello_result v = door_.sessions.rules().asked(h);
  // From now on, so that nothing comes in between.
  if (v == hello_result::welcome && h.kind == channel::bulk) door_.sessions.rules().begins(h.who, h.number);
  door_.bulk.post([this, waits, h, v] {
    const auto still = waits.lock();
    if (still && waiting_.contains(still.get())) {
      ruled(still, h, v);
    } else if (v == hello_result::welcome && h.kind == channel::bulk) {
      undo(h);
    }
  });
}

void admission::ruled(const std::shared_ptr<talk>& t, const hello& h, hello_result v) {
  if (v != hello_result::welcome) return refuse(t, v, words(v));
  known(t.get());  // where nothing else is asked for
  if (h.kind == channel::bulk) return join(t, h);
  const key which{h.who.id, h.number};
  if (halves_.contains(which)) return refuse(t, hello_result::duplicate, words(hello_result::duplicate));
  t->write(encode(answer{.who = door_.self, .takes = door_.takes()}), [this, t, h, which] {
    halves_.emplace(which, half{t, h});
  });
}

void admission::join(const std::shared_ptr<talk>& bulk, const hello& h) {
  const key which{h.who.id, h.number};
  if (!halves_.contains(which)) {
    undo(h);
    return refuse(bulk, hello_result::unknown, "its control connection is not here");
  }
  joining_.emplace(bulk.get(), h);
  bulk->write(encode(answer{.who = door_.self, .takes = door_.takes()}), [this, bulk, which] {
    const auto found = halves_.find(which);
    if (found == halves_.end()) {
      bulk->drop();
      return forget(bulk.get());
    }
    joining_.erase(bulk.get());
    const half control = found->second;
    admit(control, bulk);
    forget(control.control.get());
    forget(bulk.get());
  });
}

void admission::admit(const half& control, const std::shared_ptr<talk>& bulk) {
  const auto both = std::make_shared<tcp_session::streams>();
  both->control = control.control->take();
  both->bulk = bulk->take();
  door_.control.post([this, both, said = control.said, remote = bulk->peer().told()] {
    door_.admit(said.who, said.takes, said.number, {}, remote, std::move(*both));
  });
}

void admission::undo(const hello& h) {
  door_.control.post([this, id = h.who.id, number = h.number] { door_.sessions.rules().ended(id, number); });
}

void admission::refuse(const std::shared_ptr<talk>& t, hello_result v, std::string text) {
  t->write(encode(answer{.what = v, .text = std::move(text)}), [t] { t->linger(); });
}

void admission::forget(talk* who) {
  const auto it = waiting_.find(who);
  if (it == waiting_.end()) return;
  const auto last = it->second;
  waiting_.erase(it);
  if (const auto joins = joining_.extract(who)) undo(joins.mapped());
  std::erase_if(halves_, [&](const auto& h) { return h.second.control == last; });
  known(who);
  const auto each = waiting_each_.find(last->peer().neighbourhood());
  if (each != waiting_each_.end() && --each->second == 0) waiting_each_.erase(each);
}

}  // namespace troupe::net::tcp
