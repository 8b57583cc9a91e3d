// What this file is for: waiting for a time or for a descriptor, with Asio.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "net/waits.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include <troupe/error.hpp>

namespace troupe::net {

namespace asio = boost::asio;

// Kept by the thread, which may outlive the object.
struct waits::state {
  asio::io_context loop{1};
  asio::executor_work_guard<asio::io_context::executor_type> work = asio::make_work_guard(loop);
  asio::steady_timer timer{loop};
  std::thread thread;

  std::mutex lock;
  std::multimap<std::chrono::steady_clock::time_point, std::function<void()>> due;

  // On the thread: calls what is due and waits for the next.
  void look() {
    for (;;) {
      std::function<void()> f;
      {
        std::lock_guard hold(lock);
        if (due.empty()) return;
        if (due.begin()->first > std::chrono::steady_clock::now()) break;
        f = std::move(due.begin()->second);
        due.erase(due.begin());
      }
      f();
    }
    std::lock_guard hold(lock);
    if (due.empty()) return;
    timer.expires_at(due.begin()->first);
    timer.async_wait([this](const boost::system::error_code& e) {
      if (!e) look();
    });
  }
};

waits::waits() : state_(std::make_shared<state>()) {
  try {
    state_->thread = std::thread([s = state_] { s->loop.run(); });
  } catch (const std::system_error& e) {
    throw error(errc::no_resource, std::string("there is no thread for timers and descriptors: ") + e.what());
  }
}

std::shared_ptr<waits> waits::shared() {
  static std::mutex lock;
  static std::weak_ptr<waits> kept;
  std::lock_guard hold(lock);
  std::shared_ptr<waits> w = kept.lock();
  if (!w) kept = w = std::make_shared<waits>();
  return w;
}

waits::~waits() {
  state_->loop.stop();
  if (state_->thread.get_id() == std::this_thread::get_id())
    state_->thread.detach();
  else
    state_->thread.join();
}

void waits::at(std::chrono::steady_clock::time_point t, std::function<void()> f) {
  bool is_first;
  {
    std::lock_guard hold(state_->lock);
    const auto added = state_->due.emplace(t, std::move(f));
    is_first = added == state_->due.begin();
  }
  if (is_first) asio::post(state_->loop, [s = state_.get()] { s->look(); });
}

class waits::watch {
 public:
  watch(std::shared_ptr<state> s, std::shared_ptr<asio::posix::stream_descriptor> d)
      : of_(std::move(s)), watched_(std::move(d)) {}
  // Descriptors of Asio belong to the thread.
  ~watch() {
    asio::post(of_->loop, [d = std::move(watched_)] {
      boost::system::error_code ignored;
      d->close(ignored);
    });
  }
  watch(const watch&) = delete;
  watch& operator=(const watch&) = delete;

 private:
  const std::shared_ptr<state> of_;
  std::shared_ptr<asio::posix::stream_descriptor> watched_;
};

std::shared_ptr<waits::watch> waits::when(int descriptor, bool writable, std::function<void()> f) {
  const int own = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);  // Asio closes what it is given
  if (own < 0) throw error(errc::io_failed, "descriptor " + std::to_string(descriptor) + ": " + std::strerror(errno));
  auto watched = std::make_shared<asio::posix::stream_descriptor>(state_->loop);
  boost::system::error_code failed;
  watched->assign(own, failed);
  if (failed) {
    ::close(own);
    throw error(errc::io_failed,
                "descriptor " + std::to_string(descriptor) + " cannot be waited for: " + failed.message());
  }
  const auto kind = writable ? asio::posix::stream_descriptor::wait_write : asio::posix::stream_descriptor::wait_read;
  // On the thread, as what closes it: so nobody is called once it is closed.
  asio::post(state_->loop, [watched, kind, f = std::move(f)]() mutable {
    if (!watched->is_open()) return;
    watched->async_wait(kind, [watched, f = std::move(f)](const boost::system::error_code& e) {
      if (e == asio::error::operation_aborted || !watched->is_open()) return;
      boost::system::error_code ignored;
      watched->close(ignored);
      f();
    });
  });
  return std::make_shared<watch>(state_, std::move(watched));
}

}  // namespace troupe::net
