// What this file is for: the members of the cluster, as one node sees them: candidate, joining, live, suspect, gone.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Pure: time comes with each call, requests come out as actions, in the order in which they must be done. A peer is
// live once both sides have greeted each other on a session. It is suspect when its session ends or nothing was heard
// of it for a while; then other members are asked to look after it. It is gone when the system at all its addresses
// says that no process listens any more, when no member heard of it for longer, when another process took its place,
// when it said goodbye, or when others say so and nothing was heard that speaks against it. A process that is called
// suspect or gone and is not refutes that with a larger round, and comes back as if it were new: the others have given
// up what they knew of it, and so it must give up what it knew of them (`forgot_us`).
//
// Up to `mesh_max` members, each is connected with all others and sends them heartbeats. Beyond (beyond_mesh.cpp), a
// node knows the others by what is said of them, watches some, others each second, in a random order in which all have
// their turn, and is connected with those and with the members it works with (Das, Gupta, Motivala, "SWIM"). A
// connection with a member there is either a link, which is told with `joined` and `gone` as in a mesh, or only to look
// after each other; membership is told with `came` and `went`. A node that was late itself does not accuse others of
// silence (Dadgar, Phillips, Currey, "Lifeguard").
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "actors/logic/membership/dialling.hpp"
#include "actors/logic/membership/difference_watch.hpp"
#include "actors/logic/membership/poll_relay.hpp"
#include "actors/logic/membership/record_sums.hpp"
#include "actors/logic/membership/rounds.hpp"
#include "actors/logic/membership/rumours.hpp"
#include "actors/logic/membership/views.hpp"
#include "actors/protocol/membership.hpp"

namespace troupe::logic {

using detail::node_claim;
using detail::node_record;

enum class node_state : std::uint8_t {
  unknown,
  candidate,  ///< heard of, not connected
  joining,    ///< connected, not greeted
  live,
  suspect,
  gone,
};

/// Why a node is gone.
enum class node_end : std::uint8_t {
  left,       ///< it said so
  ended,      ///< its session ended and no process listens at its addresses
  silent,     ///< nothing was heard of it
  replaced,   ///< another process listens at its address, or has its id
  said,       ///< other members found one of these
  forgot_us,  ///< it had given this node up and comes back as new
  given_up,   ///< this node has lost track of what both had agreed on
  let_go,     ///< only the link is gone: it has no use between so many members
};

struct membership_options {
  using milliseconds = std::chrono::milliseconds;

  milliseconds heartbeat{250};
  milliseconds suspect{1000}, gone{3000};  ///< duration of silence
  milliseconds late{250};                  ///< a node later than this by its own timer stretches what it measures
  milliseconds probe{500};                 ///< between two requests to others to look after a suspect
  std::size_t probes = 3;                  ///< other members that are asked at a time
  std::size_t mesh_max = 64;               ///< members, with this one
  // Options beyond a mesh:
  std::size_t watched = 8;     ///< members that are watched at a time, in turn
  milliseconds turn{1000};     ///< between the starts of watching two members
  std::size_t asked = 4;       ///< connected members, not watched, that are asked at each heartbeat
  std::size_t unwatched = 32;  ///< connected members, not watched, that stay connected
  std::size_t told = 6;        ///< members that are told at once of an end that this node has heard of

  std::size_t nodes = 4096;      ///< nodes remembered, with those that are gone
  milliseconds forget{600'000};  ///< after which nodes that are gone are forgotten
  dialling::limits dials{};
  std::uint64_t seed = 1;
};

class membership {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  // ---- actions ------------------------------------------------------------------------------------------------------
  struct dial {
    node_address to;
    std::optional<node_id> instead{};  ///< replaces the silent session with that node, if it stays silent
  };
  struct send {
    node_id to;
    membership_message message;
  };
  /// Ends the session with that node.
  struct close {
    node_id node;
  };
  /// A new member is connected.
  struct joined {
    node_id node;
  };
  /// The node is connected again, without ever having been gone. Messages under way on the session before may be lost.
  struct resumed {
    node_id node;
  };
  struct suspected {
    node_id node;
  };
  struct refuted {
    node_id node;
  };
  struct gone {
    node_id node;
    node_end why;
  };
  struct view_changed {};
  /// The node is live now, connected or not. In a mesh just before it has joined, and `went` after it is gone.
  struct came {
    node_id node;
  };
  struct went {
    node_id node;
    node_end why;
  };
  using action = std::variant<dial, send, close, joined, resumed, suspected, refuted, gone, view_changed, came, went>;

  membership(const node_id& self, std::uint64_t incarnation, std::vector<node_address> addresses,
             const membership_options&, time_point now);

  /// Sets the addresses where this process listens, if they were not known before.
  void listens(std::vector<node_address>);

  // ---- events -------------------------------------------------------------------------------------------------------
  /// Takes an address that discovery found.
  void candidate(const node_address&, time_point now);
  /// Takes a new session. `dialled`: the address as it was given with `dial`, if the session comes from that.
  void session_up(const node_id&, std::uint64_t incarnation, const std::vector<node_address>&,
                  const std::optional<node_address>& dialled, time_point now);
  void session_down(const node_id&, time_point now);
  /// Notes that a dial failed. `nobody_listens`: the system at that address says so.
  void refused(const node_address&, bool nobody_listens, time_point now);
  /// Notes that a dial led to a node that is connected already.
  void known(const node_address&, const node_id&, time_point now);
  /// Notes that a dial led to this process.
  void is_self(const node_address&);
  /// Notes that something was received from the node, at that time.
  void heard(const node_id&, time_point when);
  void message(const node_id& from, const membership_message&, time_point now);
  /// Does what is due; to be called at `wake()`, or earlier.
  void tick(time_point now);
  /// Ends the link and the session with a node because the states that both hold for each other do not fit any more:
  /// both begin anew.
  void give_up(const node_id&, time_point now);
  /// Notes that there is work with the node: beyond a mesh it is linked and watched until it is gone.
  void work_with(const node_id&, time_point now);
  /// Keeps at least so many links with random members beyond a mesh from now on, if there are as many.
  void want_links(std::size_t links) { links_wanted_ = std::max(links_wanted_, links); }
  /// Says goodbye to all members; nothing is dialled afterwards.
  void leave(time_point now);

  /// Returns the actions since the last call.
  std::vector<action> take() { return std::exchange(actions_, {}); }
  time_point wake() const;

  // ---- queries ------------------------------------------------------------------------------------------------------
  node_state state_of(const node_id&) const;
  /// Returns all members that are not gone, with this node, sorted; connected or only heard of.
  std::vector<node_id> members() const;
  /// Returns the members that are or were connected and are not gone, beyond a mesh all members; with this node,
  /// sorted.
  const std::vector<node_id>& live() const;
  bool is_mesh() const { return is_mesh_; }
  const node_record& self() const { return self_; }
  std::optional<node_record> record_of(const node_id&) const;
  const node_view& view() const { return views_.agreed(); }
  /// True if this node and those it counts as live are more than half of the last agreed view.
  bool has_majority() const { return views_.has_majority(live()); }
  std::optional<node_id> coordinator() const { return views_.coordinator(live()); }
  /// Returns the number of nodes and addresses that are remembered.
  std::size_t remembered() const { return members_.size() + dials_.size(); }

 private:
  /// The session with a member. `greeted` only while it is up.
  struct session_state {
    bool up = false, greeted = false;
    bool said_link = false, heard_link = false;  // on this session, by each side
    time_point since{};                          // when it began, or ended
  };
  /// Why a member is watched beyond a mesh.
  struct watch_state {
    bool wanted = false;  // for work
    bool chosen = false;  // in turn
    time_point since{};
  };
  /// What shows that a member lives, and that it hears this node.
  struct signs_of_life {
    time_point heard{}, asked{};  // an answer is awaited if asked is later
    time_point told{};            // when others last said that it lives
    time_point deaf_since{};      // since when it hears nothing of this node, by its own word
    time_point answered{};        // when the last message was sent to it that it has shown to have heard
    std::uint64_t sent = 0;       // its own time in its last beat; 0: none yet
  };
  /// A member's silence, and what is done about it.
  struct doubt_state {
    bool stands = false;  // it is suspect
    time_point since{};   // of the last doubt, over or not
    time_point probed{}, redialled{};
  };
  struct member {
    node_record record{};
    bool known = false;         // other nodes may be told of it
    bool met = false;           // it has joined, and is not gone
    bool shown = false;         // as a member
    std::uint64_t counted = 0;  // its part in sums_
    session_state session{};
    watch_state watch{};
    signs_of_life signs{};
    doubt_state doubt{};
    time_point told_view{}, ended{}, differs{};
    std::vector<node_address> empty{};                     // its addresses where no process listens any more
    std::vector<std::pair<node_id, time_point>> askers{};  // members that wait for a sign of life of it
    std::optional<std::pair<std::uint32_t, node_claim>> challenged{};
  };
  using table = std::map<node_id, member>;

  static constexpr std::size_t news_max = 8, news_beyond_max = 24;  // records with one heartbeat

  // states.cpp: what this node has of each member
  void link(member&, time_point now, detail::link_use);
  void link(member&);
  void join(member&);
  void show(member&, node_end);
  std::uint64_t own_time(time_point now) const;
  std::vector<node_id> attended() const;
  std::vector<node_id> some_connected(std::size_t n, const node_id& but);

  // news.cpp: what this node says of itself and of others
  void say_all(const std::vector<node_record>&);
  void changed(member&);
  void spread(const node_id&);
  void tell_news(std::vector<node_record>& to);
  std::uint64_t digest() const;
  detail::node_beat beat_for(const member&, bool answer, time_point now) const;
  void beat_to(const member&, bool answer, time_point now);

  // ends.cpp: suspicion, and the end of a member
  void end(member&, node_end, node_claim, time_point now);
  void doubt(member&, time_point now);

  // membership.cpp: sessions and what they bring
  void take_message(member&, const detail::node_hello&, time_point now);
  void take_message(member&, const detail::node_beat&, time_point now);
  void take_message(member&, const detail::node_probe&, time_point now);
  void take_message(member&, const detail::node_alive&, time_point now);
  void take_message(member&, const detail::node_news&, time_point now);
  void take_message(member&, const detail::node_link&, time_point now);
  void take_message(member&, const detail::node_rest&, time_point now);
  void take_message(member&, const detail::node_sums&, time_point now);
  static detail::link_use use_of(const member& m) {
    return m.watch.wanted        ? detail::link_use::work
           : m.session.said_link ? detail::link_use::idle
                                 : detail::link_use::none;
  }
  void trust(member&);
  void note(member&, const detail::node_beat&, time_point now);
  void believe(member&, time_point now);
  void say(const node_id& to, membership_message m) { actions_.push_back(send{to, std::move(m)}); }

  // gossip.cpp: what is said of nodes
  void merge(const node_record&, time_point now);
  void merge_out(member&, const node_record&, time_point now);
  void revive(member&, const node_record&, time_point now);
  void about_me(const node_record&);
  void challenge(member&, const node_record&);
  void ask_for_all(member&, time_point now);
  void compare(member&, std::uint64_t digest, time_point now);
  std::vector<node_record> everything() const;
  std::vector<std::uint64_t> sums() const;

  // timers.cpp: what time brings
  void tolerate_own_delay(time_point::duration late, time_point now);
  void beat(time_point now);
  bool is_deaf(const member& m) const { return m.session.up && is_watched(m) && m.signs.deaf_since != time_point{}; }
  bool hears_us(const member& m, time_point now) const;
  void look_after(member&, time_point now);
  void probe(member&, time_point now);
  void dial_anew(member&, time_point now);
  time_point quiet_since(const member&, time_point now) const;
  void agree(time_point now);
  void pass_polls_on(time_point now);
  void forget(time_point now);

  // beyond_mesh.cpp: more members than fit a mesh
  void fit_mesh(time_point now);
  void leave_mesh(time_point now);
  void make_mesh(time_point now);
  bool is_watched(const member& m) const { return is_mesh_ || m.watch.wanted || m.watch.chosen; }
  bool is_awaited(const member& m) const { return m.signs.asked > m.signs.heard; }
  void attend(const member& m) { active_.insert(m.record.node); }
  bool needs_attention(const member& m) const {
    return m.session.up || m.met || m.watch.wanted || m.watch.chosen || is_awaited(m) || !m.askers.empty();
  }
  void beat_beyond(time_point now);
  void look_around(time_point now);
  void choose(time_point now);
  void keep_links(time_point now);
  void let_rest(time_point now);
  void probe_isolation(time_point now);
  member* next_in_turn(bool with_connected);
  void watch(member&, time_point now);
  void ask(member&, time_point now);
  void rest(member&, time_point now, bool says_so);
  void pass_on(const member&);

  bool is_connected(const member& m) const { return m.session.up && m.session.greeted && !m.record.is_out(); }
  /// True if this node itself has heard of the member lately.
  bool is_fresh(const member& m, time_point now) const {
    return is_connected(m) && now - m.signs.heard < options_.suspect;
  }

  const membership_options options_;
  node_record self_;
  table members_;
  dialling dials_;
  views views_;
  rumours rumours_;
  difference_watch differences_;
  bool is_mesh_ = true;         // heartbeats go to all
  std::vector<node_id> turns_;  // members to ask, in a random order
  const time_point began_;
  time_point next_beat_, promised_, forgot_{};
  record_sums sums_;  // of the members besides this one
  mutable std::optional<std::vector<node_id>> live_;
  // State beyond a mesh.
  std::set<node_id> active_;  // members of which something is awaited
  rounds rounds_;
  std::size_t links_wanted_ = 0, passed_ = 0;
  time_point next_turn_{}, probed_isolation_{};
  poll_relay relay_;
  std::mt19937_64 random_;
  std::vector<action> actions_;
};

}  // namespace troupe::logic
