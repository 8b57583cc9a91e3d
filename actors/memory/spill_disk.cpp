// What this file is for: the disk's thread: one move after the other.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/memory/spill_disk.hpp"

#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

#include <troupe/error.hpp>

#include "actors/memory/host_tiles.hpp"
#include "actors/protocol/clock.hpp"
#include "actors/protocol/phase.hpp"
#include "devices/threads.hpp"

namespace troupe::detail {

namespace {

class disk final : public disk_thread, public std::enable_shared_from_this<disk> {
 public:
  disk(disk_options o, wait_board& b, house_link& link) : options_(std::move(o)), board_(b), link_(link) {
    lane_.open(options_.sink, options_.lane, "disk");
  }

  void move(task_record& t, std::uint64_t offset) override { add({&t, offset, 0}); }
  void discard(std::uint64_t offset, std::uint64_t bytes) override { add({nullptr, offset, bytes}); }
  void read(std::uint64_t offset, std::byte* to, std::size_t bytes) override {
    std::promise<void> done;
    add({nullptr, offset, bytes, to, &done});
    done.get_future().get();
  }
  std::uint64_t bytes_out() const override { return out_.load(std::memory_order_relaxed); }
  std::uint64_t bytes_in() const override { return in_.load(std::memory_order_relaxed); }

  void start() override {
    thread_ = std::thread([house = options_.house.lock(), self = shared_from_this()] { self->thread_main(); });
    started_ = true;
  }
  void request_stop() override {
    {
      std::lock_guard hold(lock_);
      stopping_ = true;
    }
    bell_.notify_all();
  }
  bool wait_ended(std::chrono::steady_clock::time_point) override;

 private:
  struct order {
    task_record* task;  // null: a discard, or a read whose caller waits
    std::uint64_t offset, bytes;
    std::byte* to = nullptr;
    std::promise<void>* done = nullptr;
  };

  void add(order);
  void thread_main();
  void carry_out(task_record&, std::uint64_t offset);
  void copy_out(const order&);
  void refuse(task_record&);
  static void refuse(const order&);

  disk_options options_;
  wait_board& board_;
  house_link& link_;
  std::atomic<std::uint64_t> out_{0}, in_{0};
  trace_lane lane_;

  std::mutex lock_;
  std::condition_variable bell_;
  std::deque<order> queue_;
  bool stopping_ = false, ended_ = false;
  std::thread thread_;
  bool started_ = false;
};

void disk::add(order o) {
  {
    std::lock_guard hold(lock_);
    if (!ended_) {
      queue_.push_back(o);
      o.task = nullptr;
      o.done = nullptr;
    }
  }
  bell_.notify_all();
  if (o.task) refuse(*o.task);
  if (o.done) refuse(o);
}

void disk::thread_main() {
  devices::name_this_thread("disk");
  for (;;) {
    order next;
    {
      std::unique_lock hold(lock_);
      bell_.wait(hold, [&] { return stopping_ || !queue_.empty(); });
      if (stopping_) break;
      next = queue_.front();
      queue_.pop_front();
    }
    if (next.task)
      carry_out(*next.task, next.offset);
    else if (next.done)
      copy_out(next);
    else
      options_.file->discard(next.offset, static_cast<std::size_t>(next.bytes));
  }
  lane_.flush();
  options_.file.reset();
  std::deque<order> late;
  {
    std::lock_guard hold(lock_);
    ended_ = true;
    late.swap(queue_);
  }
  bell_.notify_all();
  for (const order& o : late) {
    if (o.task) refuse(*o.task);
    if (o.done) refuse(o);
  }
}

void disk::copy_out(const order& o) {
  try {
    options_.file->read(o.offset, o.to, static_cast<std::size_t>(o.bytes));
    o.done->set_value();
  } catch (...) {
    o.done->set_exception(std::current_exception());
  }
}

void disk::carry_out(task_record& t, std::uint64_t offset) {
  const std::uint64_t begin = ticks();
  array_core& a = *t.accesses[0].array;
  const std::uint32_t tile = t.accesses[0].tile;
  const std::size_t bytes = a.bytes_of(tile);
  const bool out = t.kind == task_kind::spill;
  claim(t);
  try {
    if (out) {
      options_.file->write(offset, a.bytes[tile].data.load(std::memory_order_acquire), bytes);
      free_host_tile(link_, a, tile);
    } else {
      options_.file->read(offset, host_tile(link_, a, tile, true), bytes);
    }
    (out ? out_ : in_).fetch_add(bytes, std::memory_order_relaxed);
  } catch (...) {
    t.error = std::current_exception();
    if (!out) free_host_tile(link_, a, tile);
  }
  if (lane_.on()) lane_.add(t.id, begin, ticks(), (t.kernel->name + (" " + a.spec.name)).c_str());
  fulfil(t, board_);
  options_.report_done(t);
}

namespace {
std::exception_ptr closed() {
  return std::make_exception_ptr(error(errc::runtime_stopped, "the runtime was shut down: the disk is closed"));
}
}  // namespace

void disk::refuse(const order& o) { o.done->set_exception(closed()); }

void disk::refuse(task_record& t) {
  if (claim(t)) t.error = closed();
  fulfil(t, board_);
  options_.report_done(t);
}

bool disk::wait_ended(std::chrono::steady_clock::time_point deadline) {
  if (!started_) return true;
  std::unique_lock hold(lock_);
  const bool ended = bell_.wait_until(hold, deadline, [&] { return ended_; });
  hold.unlock();
  if (thread_.joinable()) {
    if (ended)
      thread_.join();
    else
      thread_.detach();  // the disk does not answer; the actor lives until its thread ends
  }
  return ended;
}

}  // namespace

std::shared_ptr<disk_thread> make_disk(disk_options o, wait_board& b, house_link& link) {
  return std::make_shared<disk>(std::move(o), b, link);
}

}  // namespace troupe::detail
