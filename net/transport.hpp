// What this file is for: the seam between nodes and wires: sessions with authenticated peers, frames, bulk transfers.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// A session is two connections with one peer: control (frames, small, in order) and bulk (bodies, in chunks, straight
// from and into the memory where they belong). A peer's identity has been proven before anything of it is passed on. A
// transport knows nothing of what frames mean.
#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/error.hpp>

namespace troupe::net {

/// A process in a cluster, chosen at random when it starts.
struct node_id {
  std::array<std::uint8_t, 16> bytes{};

  auto operator<=>(const node_id&) const = default;
  static node_id random();
  /// 32 hexadecimal digits.
  std::string text() const;
};

struct node_id_hash {
  std::size_t operator()(const node_id& n) const {
    std::size_t h = 0;
    for (const std::uint8_t b : n.bytes) h = h * 0x100000001b3u ^ b;
    return h;
  }
};

struct endpoint {
  std::string host{};  ///< an address or a name
  std::uint16_t port = 0;

  auto operator<=>(const endpoint&) const = default;
  /// "10.0.0.1:4711", "[::1]:4711", "node7.cluster:4711"; nothing if it is not of that form.
  static std::optional<endpoint> parse(std::string_view);
  std::string text() const;
};

/// The word of a process about itself once it has been admitted.
struct identity {
  node_id id{};
  std::uint64_t incarnation = 0;  ///< of the same id, the larger is the later
  std::string name{};             ///< for people; unique in a cluster if users want to tell nodes apart
  std::string cluster{};          ///< others are not admitted
  std::vector<endpoint> listens_on{};
};

/// The proof that a process belongs to the cluster: either a secret, shared by all, or a certificate of its own.
struct credentials {
  using secret_bytes = std::array<std::uint8_t, 32>;
  /// The first is used to dial; each is accepted, so that a secret can be replaced while nodes run.
  std::vector<secret_bytes> secrets{};
  /// PEM files. The certificate names the cluster (`urn:troupe:cluster:NAME` as a subject alternative name).
  std::string certificate{}, key{}, authority{};
};

struct transport_options {
  identity self{};
  /// Where to listen; port 0: any. Empty: it only dials.
  std::vector<endpoint> listen{};
  credentials proof{};
  /// Neither credentials nor encryption; loopback addresses only.
  bool insecure_loopback = false;
  std::size_t frame_max = 16u << 20;          ///< bytes of a control frame; before admission 64 KiB
  std::size_t unsent_max = 64u << 20;         ///< bytes of control that wait for a slow peer; beyond, its session ends
  std::size_t chunk_bytes = 1u << 20;         ///< of bulk
  std::chrono::milliseconds handshake{5000};  ///< for a connection to be admitted
  int waiting_max = 256;                      ///< connections that are not admitted yet, in total
  int waiting_each_max = 64;                  ///< of one address
  /// After something has happened the control thread looks so long for more before it sleeps (adaptive_spin.hpp).
  std::chrono::nanoseconds looks{};
};

class session;

/// Why a dial led to no session.
class dial_error : public error {
 public:
  enum class reason : std::uint8_t {
    nobody_listens,  ///< the system there said so at once: no process has that port
    no_answer,       ///< nothing came back in time; the process may be alive
    not_admitted,    ///< it or this node does not belong to the cluster
    known,           ///< there is a session with that peer already
    self,            ///< it is this node
  };

  dial_error(reason why, const std::string& text, std::optional<node_id> peer = {})
      : error(why == reason::nobody_listens || why == reason::no_answer ? errc::unreachable : errc::refused, text),
        why_(why),
        peer_(peer) {}
  reason why() const noexcept { return why_; }
  /// Returns the node that answered, where that is known.
  const std::optional<node_id>& peer() const noexcept { return peer_; }

 private:
  reason why_;
  std::optional<node_id> peer_;
};

/// Where the body of a transfer goes, or comes from: pieces of memory, in order.
using pieces = std::vector<std::span<std::byte>>;
using const_pieces = std::vector<std::span<const std::byte>>;

/// The control thread's part for threads that have nothing else to do: what comes is handled by the thread that goes on
/// with it, where two would have to be woken one after the other. Any thread.
class control_poller {
 public:
  virtual ~control_poller() = default;
  /// Does one thing that the control thread would do now, on the calling thread; true if there was something to do.
  /// False, and the control thread is asked for its part, while it has that itself; it gives it away when it has
  /// nothing to do. It takes it back when nobody has polled for a moment.
  virtual bool poll() noexcept = 0;
  /// Wakes the control thread, if it sleeps, to give its part away. After a `poll` that has got nothing, where more is
  /// likely to come soon; costs a wake-up.
  virtual void hurry() noexcept = 0;
  /// Gives the part back, or does not want it any more: no thread that has polled will do so for a while.
  virtual void rest() = 0;
  /// Returns how often the control thread itself has had something to do: a number that grows.
  virtual std::uint64_t turns() const noexcept = 0;
};

/// The events of a transport. `up`, `frame`, `down` and `refused` come one at a time, on the transport's control thread
/// or on a thread that polls in its place; `arriving` and `arrived` one at a time, on its bulk thread. None may block.
class transport_events {
 public:
  /// A session with the peer has come up, the only one.
  virtual void up(const std::shared_ptr<session>&) = 0;
  /// A frame that the peer has sent; valid during the call.
  virtual void frame(session&, std::span<const std::byte>) = 0;
  /// A transfer begins. Answers where its bytes go: memory of `bytes` in all, which stays valid until `arrived`;
  /// anything else and they are thrown away.
  virtual pieces arriving(session&, std::span<const std::byte> head, std::uint64_t bytes) = 0;
  /// All of it is there, checksums and all; or, if not `whole`, the session is ending.
  virtual void arrived(session&, std::span<const std::byte> head, bool whole) = 0;
  /// The session has ended, and nothing of it is called any more: each transfer has been answered for.
  virtual void down(session&, std::exception_ptr why) = 0;
  /// A dial has led to no new session: nobody answered there, or not as a member, or as one that is known; a
  /// `dial_error`.
  virtual void refused(const endpoint&, std::exception_ptr why) = 0;
  /// A member was not let in that came from there: it has the name or the id of another one, which is there.
  virtual void turned_away(const endpoint&, std::exception_ptr) {}

 protected:
  ~transport_events() = default;
};

/// Any thread may call it.
class session {
 public:
  virtual ~session() = default;
  virtual const identity& peer() const = 0;
  /// True if this side has dialled.
  virtual bool dialled() const = 0;
  /// Returns what this side has dialled, as it was given to `dial`.
  virtual std::optional<endpoint> dialled_at() const { return {}; }
  /// Sends a frame, a copy of it. Never blocks; from the calling thread if nothing is waiting to be sent. Frames arrive
  /// in order. False: the session has ended, or the frame is larger than `frame_max`.
  virtual bool send(std::span<const std::byte> frame) = 0;
  /// Bytes of a frame that both sides take, at most.
  virtual std::size_t frame_max() const = 0;
  /// Sends a body by bulk; the memory stays as it is until `done(ok)`, which is called once, on the bulk thread or, if
  /// the session has ended, on the caller's. Several are under way at once and take turns by chunks. `head`: at most 4
  /// KiB.
  virtual void send_bulk(std::span<const std::byte> head, const_pieces body, std::function<void(bool)> done) = 0;
  /// Bytes of control that wait to be sent.
  virtual std::size_t unsent() const = 0;
  /// When anything of the peer was last heard, on either connection.
  virtual std::chrono::steady_clock::time_point heard() const = 0;
  /// Bytes over the wire, with all that frames and encryption add.
  virtual std::uint64_t bytes_sent() const = 0;
  virtual std::uint64_t bytes_received() const = 0;
  /// How many of them went through a fabric (bulk_fabric.hpp), in clear.
  virtual std::uint64_t fabric_sent() const { return 0; }
  virtual std::uint64_t fabric_received() const { return 0; }
  /// Ends the session; `down` follows, on both sides.
  virtual void close(std::exception_ptr why) = 0;
};

class transport {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  using duration = time_point::duration;

  virtual ~transport() = default;
  /// Listens and begins to tell. Throws `error(bad_argument)` for what makes no sense (listening without credentials,
  /// keys that do not fit), `error(io_failed)` for what cannot be read or bound.
  virtual void start(transport_events&) = 0;
  /// Where it listens, with the ports that it got.
  virtual std::vector<endpoint> listening() const = 0;
  /// Looks for a peer there; `up` or `refused` follows, or nothing if there is a session with that process already. Of
  /// two processes that dial each other one session stays. `instead`: a session that has become silent. If its peer is
  /// reached and it has said nothing meanwhile, the new one takes its place: it is told `down`, then the other one
  /// `up`.
  virtual void dial(const endpoint&, std::shared_ptr<session> instead) = 0;
  void dial(const endpoint& e) { dial(e, nullptr); }
  /// Runs `f` on the control thread, not before that time. Later calls for the same time come later.
  virtual void at(time_point, std::function<void()> f) = 0;
  virtual time_point now() const = 0;
  /// The part of the control thread for others; null if this transport keeps it. After `stop` there is nothing to do.
  virtual std::shared_ptr<control_poller> poller() { return nullptr; }
  /// Ends all sessions, each of which is told `down`, and joins its threads; nothing is told afterwards. Not from its
  /// own threads. Idempotent.
  virtual void stop() = 0;
};

}  // namespace troupe::net
