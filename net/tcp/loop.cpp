// What this file is for: the loop on Asio's reactor, with queues of its own for calls and for times.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Asio gets handlers that hold nothing of ours: what it still has queued when the loop stops can then neither run nor
// keep a session alive that keeps the loop alive.
#include "net/tcp/loop.hpp"

#include <utility>  // before Asio, which forgets it

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "net/adaptive_spin.hpp"
#include "net/threads.hpp"

namespace troupe::net::tcp {

namespace asio = boost::asio;

struct loop::inside {
  inside(std::string n, std::chrono::nanoseconds l) : name(std::move(n)), looks(l) {}

  void run() {
    adaptive_spin more;
    while (context.run_one() != 0)
      while (more.begin(std::chrono::steady_clock::now(), looks) && finds_more(more)) continue;
  }
  bool finds_more(adaptive_spin& more) {
    while (context.poll() == 0)
      if (context.stopped() || !more.goes_on()) return false;
    return true;
  }
  void run_posted() {
    std::vector<std::function<void()>> now;
    {
      const std::lock_guard hold(lock);
      now.swap(posted);
    }
    for (auto& f : now) {
      f();
      f = nullptr;
    }
  }
  void arm() {
    time_point next;
    {
      const std::lock_guard hold(lock);
      if (stopped || timed.empty()) return;
      next = timed.begin()->first;
    }
    timer.expires_at(next);
    timer.async_wait([this](const boost::system::error_code& failed) {
      if (!failed) run_timed();
    });
  }
  void run_timed() {
    const time_point now = std::chrono::steady_clock::now();
    for (;;) {
      std::function<void()> f;
      {
        const std::lock_guard hold(lock);
        if (stopped || timed.empty() || timed.begin()->first > now) break;
        f = std::move(timed.begin()->second);
        timed.erase(timed.begin());
      }
      f();
    }
    arm();
  }

  const std::string name;
  const std::chrono::nanoseconds looks;
  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  asio::steady_timer timer{context};
  std::mutex lock;
  bool stopped = false;
  std::vector<std::function<void()>> posted;
  std::multimap<time_point, std::function<void()>> timed;
  std::thread thread;
};

loop::loop(std::string thread_name, std::chrono::nanoseconds looks)
    : inside_(std::make_unique<inside>(std::move(thread_name), looks)) {}

loop::~loop() { stop(); }

void loop::start() {
  inside_->thread = std::thread([in = inside_.get()] {
    name_this_thread(in->name);
    in->run();
  });
}

bool loop::post(std::function<void()> f) {
  bool first = false;
  {
    const std::lock_guard hold(inside_->lock);
    if (inside_->stopped) return false;
    first = inside_->posted.empty();
    inside_->posted.push_back(std::move(f));
  }
  if (first) asio::post(inside_->context, [in = inside_.get()] { in->run_posted(); });
  return true;
}

void loop::at(time_point when, std::function<void()> f) {
  bool earliest = false;
  {
    const std::lock_guard hold(inside_->lock);
    if (inside_->stopped) return;
    const auto it = inside_->timed.emplace(when, std::move(f));
    earliest = it == inside_->timed.begin();
  }
  if (earliest) asio::post(inside_->context, [in = inside_.get()] { in->arm(); });
}

void loop::stop() {
  std::vector<std::function<void()>> posted;
  std::multimap<time_point, std::function<void()>> timed;
  {
    const std::lock_guard hold(inside_->lock);
    inside_->stopped = true;
    posted.swap(inside_->posted);
    timed.swap(inside_->timed);
  }
  inside_->context.stop();
  if (inside_->thread.joinable()) inside_->thread.join();
}

bool loop::here() const { return std::this_thread::get_id() == inside_->thread.get_id(); }

struct watch::inside {
  inside(asio::io_context& context, int socket) : descriptor(context, socket) {}

  asio::posix::stream_descriptor descriptor;
  std::function<void()> on_readable, on_writable;
};

watch::watch(loop& l, int socket) : inside_(std::make_shared<inside>(l.inside_->context, socket)) {}

watch::~watch() {
  // The handlers that Asio still holds find nothing to call.
  const auto readable = std::exchange(inside_->on_readable, nullptr);
  const auto writable = std::exchange(inside_->on_writable, nullptr);
  inside_->descriptor.release();
}

void watch::readable(std::function<void()> f) {
  inside_->on_readable = std::move(f);
  inside_->descriptor.async_wait(asio::posix::descriptor_base::wait_read,
                                 [in = std::weak_ptr(inside_)](const boost::system::error_code&) {
                                   const auto alive = in.lock();
                                   if (!alive) return;
                                   if (auto call = std::exchange(alive->on_readable, nullptr)) call();
                                 });
}

void watch::writable(std::function<void()> f) {
  inside_->on_writable = std::move(f);
  inside_->descriptor.async_wait(asio::posix::descriptor_base::wait_write,
                                 [in = std::weak_ptr(inside_)](const boost::system::error_code&) {
                                   const auto alive = in.lock();
                                   if (!alive) return;
                                   if (auto call = std::exchange(alive->on_writable, nullptr)) call();
                                 });
}

}  // namespace troupe::net::tcp
