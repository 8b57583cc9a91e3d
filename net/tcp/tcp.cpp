// What this file is for: the transport over TCP: its two threads and what runs on them.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/tcp/tcp.hpp"

#include <algorithm>
#include <future>
#include <mutex>
#include <utility>

#include <troupe/error.hpp>

#include "net/tcp/admission.hpp"
#include "net/tcp/dialling.hpp"
#include "net/tcp/doorway.hpp"
#include "net/tcp/fabric_drive.hpp"

namespace troupe::net {

namespace tcp {

namespace {

void check(const transport_options& o) {
  const auto wrong = [](const char* what) { throw error(errc::bad_argument, what); };
  const bool proof =
      !o.proof.secrets.empty() || !o.proof.certificate.empty() || !o.proof.key.empty() || !o.proof.authority.empty();
  if (!proof && !o.insecure_loopback)
    wrong(
        "a node needs credentials: give a cluster secret or certificates (without them only insecure_loopback works)");
  if (proof && o.insecure_loopback) wrong("insecure_loopback uses no credentials: give one or the other");
  if (o.frame_max == 0 || o.frame_max > UINT32_MAX) wrong("frame_max has to be from 1 to 4 GiB");
  if (o.chunk_bytes < 1024 || o.chunk_bytes > (64u << 20)) wrong("chunk_bytes has to be from 1 KiB to 64 MiB");
  if (o.handshake.count() <= 0) wrong("the time for a handshake has to be positive");
  if (o.looks.count() < 0) wrong("looks must not be negative");
  if (o.waiting_max < 1 || o.waiting_each_max < 1) wrong("waiting_max and waiting_each_max have to be at least 1");
  if (o.self.name.size() > 255 || o.self.cluster.size() > 255)
    wrong("the names of node and cluster have at most 255 characters");
  if (std::ranges::any_of(o.self.name, [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
    wrong("the name of the node holds what cannot be shown");
}

/// Everything between `start` and `stop`.
struct running {
  running(const transport_options& o, std::unique_ptr<tls> p, fabric_drive* fabric, loop& control, loop& bulk,
          transport_events& events)
      : proof(std::move(p)),
        sessions(control, bulk, fabric, o.self.id, events),
        door{o, o.self, proof.get(), control, bulk, events, sessions},
        accepts(door, listens),
        dials(door) {}

  std::unique_ptr<tls> proof;
  roster sessions;
  doorway door;
  listeners listens;
  admission accepts;
  dialling dials;
};

class tcp_transport final : public transport {
 public:
  tcp_transport(transport_options o, std::unique_ptr<bulk_fabric> f) : options_(std::move(o)) {
    if (f) fabric_ = std::make_unique<fabric_drive>(bulk_, std::move(f));
  }
  ~tcp_transport() override { stop(); }

  void start(transport_events& events) override {
    const std::lock_guard hold(lock_);
    if (running_ || stopped_) throw error(errc::bad_argument, "a transport starts once: make another");
    check(options_);
    auto proof = options_.insecure_loopback ? nullptr : std::make_unique<tls>(options_.proof, options_.self.cluster);
    auto fresh = std::make_unique<running>(options_, std::move(proof), fabric_.get(), control_, bulk_, events);
    fresh->listens.open(options_.listen, options_.insecure_loopback);
    listening_ = fresh->listens.told();
    if (fresh->door.self.listens_on.empty()) fresh->door.self.listens_on = listening_;
    running_ = std::move(fresh);
    bulk_.post([this, r = running_.get()] {
      if (fabric_) fabric_->begin();
      r->accepts.begin();
    });
    try {
      control_.start();
      bulk_.start();
    } catch (...) {  // no thread for one of them: nothing that was posted is done
      control_.stop();
      bulk_.stop();
      running_.reset();
      stopped_ = true;
      throw;
    }
  }

  std::vector<endpoint> listening() const override {
    const std::lock_guard hold(lock_);
    return listening_;
  }

  using transport::dial;
  void dial(const endpoint& where, std::shared_ptr<session> instead) override {
    const std::lock_guard hold(lock_);
    if (!running_) throw error(errc::bad_argument, "a transport dials between start and stop");
    control_.post([r = running_.get(), where, old = std::move(instead)] { r->dials.dial(where, old); });
  }

  void at(time_point when, std::function<void()> f) override { control_.at(when, std::move(f)); }
  time_point now() const override { return std::chrono::steady_clock::now(); }
  std::shared_ptr<control_poller> poller() override { return control_.poller(); }

  void stop() override {
    const std::lock_guard only_one(stopping_);
    running* r = nullptr;
    {
      const std::lock_guard hold(lock_);
      if (std::exchange(stopped_, true) || !running_) return;
      r = running_.get();
    }
    std::promise<void> ended;
    bulk_.post([&, r] {
      r->accepts.end();
      control_.post([&, r] {
        r->dials.end();
        r->sessions.end_all(std::make_exception_ptr(error(errc::runtime_stopped, "this node has stopped")), [&] {
          bulk_.post([&] {
            if (fabric_) fabric_->end();
            ended.set_value();
          });
        });
      });
    });
    ended.get_future().wait();
    control_.stop();
    bulk_.stop();
  }

 private:
  const transport_options options_;
  mutable std::mutex lock_;
  std::mutex stopping_;
  // The loops outlive what runs on them; sessions that somebody still holds have no part in either any more.
  loop control_{"troupe-control", options_.looks};
  loop bulk_{"troupe-bulk"};
  std::unique_ptr<fabric_drive> fabric_;
  std::unique_ptr<running> running_;
  std::vector<endpoint> listening_;
  bool stopped_ = false;
};

}  // namespace

}  // namespace tcp

std::unique_ptr<transport> make_tcp(transport_options o, std::unique_ptr<bulk_fabric> f) {
  return std::make_unique<tcp::tcp_transport>(std::move(o), std::move(f));
}

}  // namespace troupe::net
