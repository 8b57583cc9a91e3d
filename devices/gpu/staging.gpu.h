// What this file is for: copies from and to pageable host memory: in pieces through a ring of pinned buffers, beside
// whoever asked for them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
//   copy in    staging stream:  [host -> buffer 0] [host -> buffer 1] ...      functions of the host
//              lane:                               [buffer 0 -> device] ...
//   copy out   the other way round; the lane ends behind the last function
//
// All of a copy is enqueued at once, so whatever is enqueued behind it on its lane comes after it, as for any other copy.
// Why not pieces copied by the caller, the device's actor: every task that depends on them would have to be held back
// until the last piece is enqueued, and the actor would copy instead of looking after its lanes. Why not a thread of our
// own: lanes can be told to wait for it by the vendors' drivers only, not by the calls that all of them share.
// Included after a vendor's header; see backend.gpu.cpp.
#pragma once

#include <array>
#include <memory>
#include <mutex>

#include "devices/gpu/copies.gpu.h"
#include "devices/gpu/staged_copy.hpp"

namespace troupe::devices::gpu::GPU_NS {

/// One direction of one device. Codes go to `check(code, call)`, which throws.
class staging {
 public:
  static constexpr index_t buffer_bytes = index_t{2} << 20;
  static constexpr std::size_t buffer_count = 3;

  explicit staging(bool in) : in_(in) {}

  /// False: there is no room for buffers, and nothing is enqueued. `pinned(bytes)` gives memory or null.
  template <class Pinned, class Check>
  bool copy(GPU(Stream_t) lane, const staged_copy& plan, std::byte* host, std::byte* device, Pinned pinned,
            Check check) {
    if (!open(pinned, check)) return false;
    const auto what = std::make_shared<const staged_copy>(plan);
    // What came before on the lane may have written the host's memory that is read now.
    if (in_) follow(stream_, begun_, lane, check);
    for (index_t at = 0, end = plan.bytes(); at < end;) {
      const auto piece = plan.next(at, buffer_bytes);
      at = piece.end;
      last_ = (last_ + 1) % buffer_count;
      buffer& b = ring_[last_];
      const auto by_host = [&] { call_host(new host_part{gate_, what, piece, host, b.memory, in_}, check); };
      const auto by_link = [&] { enqueue_staged(lane, plan, piece, device, b.memory, in_, check); };
      if (in_) {
        if (b.used) check(GPU(StreamWaitEvent)(stream_, b.free, 0), "StreamWaitEvent");
        by_host();
        follow(lane, b.full, stream_, check);
        by_link();
        check(GPU(EventRecord)(b.free, lane), "EventRecord");
      } else {
        if (b.used) check(GPU(StreamWaitEvent)(lane, b.free, 0), "StreamWaitEvent");
        by_link();
        follow(stream_, b.full, lane, check);
        by_host();
        check(GPU(EventRecord)(b.free, stream_), "EventRecord");
      }
      b.used = true;
    }
    if (!in_) check(GPU(StreamWaitEvent)(lane, ring_[last_].free, 0), "StreamWaitEvent");
    return true;
  }

  /// From here on nothing touches memory of the host's. Waits for the piece that is being copied.
  void stop() noexcept {
    const std::lock_guard lock(gate_->guard);
    gate_->open = false;
  }
  /// After `stop`. `alive`: its stream and events still exist.
  void close(bool alive) noexcept {
    if (!alive) return;
    for (const buffer& b : ring_)
      for (const auto event : {b.full, b.free})
        if (event) (void)GPU(EventDestroy)(event);
    if (begun_) (void)GPU(EventDestroy)(begun_);
    if (stream_) (void)GPU(StreamDestroy)(stream_);
  }

 private:
  struct buffer {
    std::byte* memory = nullptr;
    GPU(Event_t) full{}, free{};
    bool used = false;
  };
  struct gate {
    std::mutex guard;
    bool open = true;
  };
  // Whoever runs it deletes it. Those that a failed device never runs are left: a few hundred bytes each.
  struct host_part {
    std::shared_ptr<gate> pass;
    std::shared_ptr<const staged_copy> plan;
    staged_copy::piece piece;
    std::byte *host, *staged;
    bool in;
  };

  template <class Pinned, class Check>
  bool open(Pinned pinned, Check check) {
    if (ring_.back().memory) return true;
    const auto make = [&](GPU(Event_t) & event) {
      if (!event) check(GPU(EventCreateWithFlags)(&event, GPU(EventDisableTiming)), "EventCreateWithFlags");
    };
    if (!stream_) check(GPU(StreamCreateWithFlags)(&stream_, GPU(StreamNonBlocking)), "StreamCreateWithFlags");
    make(begun_);
    for (buffer& b : ring_) {
      make(b.full);
      make(b.free);
      if (!b.memory) b.memory = pinned(static_cast<std::size_t>(buffer_bytes));
      if (!b.memory) return false;
    }
    return true;
  }

  // `well`: what came before it on the stream has not failed.
  static void run(void* p, bool well) {
    const std::unique_ptr<host_part> mine(static_cast<host_part*>(p));
    const std::lock_guard lock(mine->pass->guard);
    if (well && mine->pass->open) mine->plan->copy_host(mine->piece, mine->host, mine->staged, mine->in);
  }

  // What `later` is given from now on comes after what `earlier` has been given.
  template <class Check>
  static void follow(GPU(Stream_t) later, GPU(Event_t) event, GPU(Stream_t) earlier, Check check) {
    check(GPU(EventRecord)(event, earlier), "EventRecord");
    check(GPU(StreamWaitEvent)(later, event, 0), "StreamWaitEvent");
  }

  template <class Check>
  void call_host(host_part* part, Check check) {
    const auto code = call_on_host<&run>(stream_, part);
    if (code == GPU(Success)) return;
    delete part;
    check(code, host_call);
  }

  const bool in_;
  GPU(Stream_t) stream_{};
  GPU(Event_t) begun_{};
  std::array<buffer, buffer_count> ring_{};
  std::size_t last_ = 0;
  std::shared_ptr<gate> gate_ = std::make_shared<gate>();
};

}  // namespace troupe::devices::gpu::GPU_NS
