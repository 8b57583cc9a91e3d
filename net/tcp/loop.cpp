// What this file is for: the loop on Asio's reactor, with queues of its own for calls and for times.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Asio gets handlers that hold nothing of ours: what it still has queued when the loop stops can then neither run nor
// keep a session alive that keeps the loop alive.
#include "net/tcp/loop.hpp"

#include <utility>  // before Asio, which forgets it

#include <algorithm>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "net/adaptive_spin.hpp"
#include "net/tcp/hot_sockets.hpp"
#include "net/threads.hpp"

namespace troupe::net::tcp {

namespace asio = boost::asio;

namespace {
// After so long without a look by the threads that it has given its part to, the loop's thread takes that back: at
// first, and when others have looked for long. To find that they do costs a switch to it and back, on the core of one
// of them where there is no other.
constexpr std::chrono::microseconds lease_min{200}, lease_max{1600};

struct watched_socket;
using hot_list = hot_sockets<watched_socket*>;

struct watched_socket : std::enable_shared_from_this<watched_socket> {
  watched_socket(asio::io_context& context, int socket, std::shared_ptr<hot_list> h)
      : descriptor(context, socket), hot(std::move(h)) {}

  void call_readable() {
    if (const auto call = std::exchange(on_readable, nullptr)) call();
  }

  asio::posix::stream_descriptor descriptor;
  std::function<void()> on_readable, on_writable;
  const std::shared_ptr<hot_list> hot;  // null: it is never read without having been waited for
  bool is_awaited = false;              // Asio says when it is readable
  bool found = false, is_look = false;
};
}  // namespace

struct loop::inside final : control_poller {
  inside(std::string n, std::chrono::nanoseconds l) : name(std::move(n)), looks(l) {}

  // The thread that has the seat drives the context: the loop's own, or one that polls while the seat is lent.
  void run() {
    adaptive_spin more;
    for (;;) {
      std::uint64_t seen = 0;
      {
        const std::lock_guard hold(seat);
        lent.store(false, std::memory_order_relaxed);
        const std::uint64_t wish = drive(more);
        if (wish == 0) return;
        seen = lend(wish);
      }
      wait_for_return(seen);
    }
  }
  // Drives the context, with the seat, until another thread wants the seat, and returns the wish; 0: the loop stops.
  std::uint64_t drive(adaptive_spin& more) {
    while (!context.stopped()) {
      if (const std::uint64_t wish = wanted.exchange(0, std::memory_order_relaxed); wish != 0) return wish;
      if (context.run_one() == 0) break;
      count_turn();
      while (wanted.load(std::memory_order_relaxed) == 0 && more.begin(std::chrono::steady_clock::now(), looks) &&
             finds_more(more))
        count_turn();
    }
    return 0;
  }
  bool finds_more(adaptive_spin& more) {
    std::size_t count = 0;
    while ((count = context.poll()) == 0)
      if (context.stopped() || wanted.load(std::memory_order_relaxed) != 0 || !more.goes_on()) return false;
    if (count > 1) is_hurried = false;  // there was something else
    return true;
  }
  void count_turn() {
    if (!std::exchange(is_hurried, false)) own_turns.fetch_add(1, std::memory_order_relaxed);
  }
  // Marks the seat as lent, before the loop's thread leaves it; gives the number of polls until then. If who wanted it
  // rests by now it is back at once.
  std::uint64_t lend(std::uint64_t wish) {
    const std::lock_guard hold(lock_of_return);
    lent.store(true, std::memory_order_seq_cst);
    is_returned = stops || rests.load(std::memory_order_seq_cst) != wish;
    return polls.load(std::memory_order_relaxed);
  }
  // Waits, without the seat, until a thread returns the lent one, or none has polled for the time of a lease.
  void wait_for_return(std::uint64_t seen) {
    std::unique_lock wait(lock_of_return);
    for (auto lease = lease_min; !returned.wait_for(wait, lease, [this] { return is_returned; });
         lease = std::min(2 * lease, lease_max)) {
      const std::uint64_t now = polls.load(std::memory_order_relaxed);
      if (std::exchange(seen, now) == now) break;
    }
  }
  void take_back(bool for_good) {
    {
      const std::lock_guard hold(lock_of_return);
      is_returned = true;
      stops = stops || for_good;
    }
    returned.notify_one();
  }

  // Runs one handler at a time: the thread that polls has other things to look for. What a handler throws ends the
  // process, as it does on the loop's own thread: it is nothing of the caller's.
  bool poll() noexcept override {
    const std::unique_lock hold(seat, std::try_to_lock);
    const bool is_lent = lent.load(std::memory_order_relaxed);
    if (hold && is_lent) {
      polls.fetch_add(1, std::memory_order_relaxed);
      return look();
    }
    if (!is_lent && wanted.load(std::memory_order_relaxed) == 0)
      wanted.store(rests.load(std::memory_order_relaxed), std::memory_order_relaxed);
    return false;
  }
  void hurry() noexcept override {
    if (lent.load(std::memory_order_relaxed)) return;
    try {
      asio::post(context, [this] { is_hurried = true; });
    } catch (const std::bad_alloc&) {  // it gives its part away when something has come
    }
  }
  // Reads the socket whose turn it is, or else has Asio look at all.
  bool look() {
    watched_socket* const next = calls.load(std::memory_order_relaxed) != 0 ? nullptr : hot->next();
    if (!next) {
      if (context.poll_one() == 0) return false;
      hot->found_some();
      return !std::exchange(is_hurried, false);
    }
    const auto alive = next->shared_from_this();
    next->found = false;
    next->is_look = true;
    next->call_readable();
    next->is_look = false;
    hot->looked(next, next->found);
    return next->found;
  }
  void rest() override {
    wanted.store(0, std::memory_order_relaxed);
    // Either the loop's thread, which lends the seat just now, sees this, or this thread sees that it is lent.
    rests.fetch_add(1, std::memory_order_seq_cst);
    if (lent.load(std::memory_order_seq_cst)) take_back(false);
  }
  std::uint64_t turns() const noexcept override { return own_turns.load(std::memory_order_relaxed); }
  // Has Asio call one of the functions below, with the seat. A thread that polls is to ask it at once then.
  void call(void (inside::*what)()) {
    asio::post(context, [this, what] {
      calls.fetch_sub(1, std::memory_order_relaxed);
      (this->*what)();
    });
    calls.fetch_add(1, std::memory_order_relaxed);
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
  const std::shared_ptr<hot_list> hot = std::make_shared<hot_list>();  // with the seat
  bool is_hurried = false;                                             // with the seat: a call that did nothing
  std::atomic<int> calls{0};  // that wait in Asio's queue; below 0 for a moment
  std::mutex lock;
  bool stopped = false;
  std::vector<std::function<void()>> posted;
  std::multimap<time_point, std::function<void()>> timed;
  std::thread thread;

  std::mutex seat;                       // of the thread that drives the context
  std::atomic<bool> lent{false};         // the thread waits meanwhile; changed with the seat
  std::atomic<std::uint64_t> rests{1};   // how often those that polled have stopped, and one
  std::atomic<std::uint64_t> wanted{0};  // the `rests` of when a thread last wanted the seat; 0: none does
  std::atomic<std::uint64_t> polls{0}, own_turns{0};
  std::mutex lock_of_return;
  std::condition_variable returned;
  bool is_returned = false, stops = false;
};

loop::loop(std::string thread_name, std::chrono::nanoseconds looks)
    : inside_(std::make_shared<inside>(std::move(thread_name), looks)) {}

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
  if (first) inside_->call(&inside::run_posted);
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
  if (earliest) inside_->call(&inside::arm);
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
  inside_->take_back(true);
  if (inside_->thread.joinable()) inside_->thread.join();
  const std::lock_guard last(inside_->seat);  // a thread that polls just now
}

std::shared_ptr<control_poller> loop::poller() { return inside_; }

struct watch::inside : watched_socket {
  using watched_socket::watched_socket;
};

watch::watch(loop& l, int socket, traffic t)
    : inside_(std::make_shared<inside>(l.inside_->context, socket,
                                       t == traffic::often ? l.inside_->hot : std::shared_ptr<hot_list>())) {}

watch::~watch() {
  // The handlers that Asio still holds find nothing to call.
  const auto readable = std::exchange(inside_->on_readable, nullptr);
  const auto writable = std::exchange(inside_->on_writable, nullptr);
  if (inside_->hot) inside_->hot->forget(inside_.get());
  inside_->descriptor.release();
}

void watch::readable(std::function<void()> f) {
  inside_->on_readable = std::move(f);
  if (std::exchange(inside_->is_awaited, true)) return;
  inside_->descriptor.async_wait(asio::posix::descriptor_base::wait_read,
                                 [in = std::weak_ptr(inside_)](const boost::system::error_code& failed) {
                                   const auto alive = in.lock();
                                   if (!alive) return;
                                   alive->is_awaited = false;
                                   if (alive->hot && !failed) alive->hot->has_come(alive.get());
                                   alive->call_readable();
                                 });
}

void watch::found() { inside_->found = true; }
bool watch::is_look() const { return inside_->is_look; }

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
