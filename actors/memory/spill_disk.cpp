// What this file is for: the disk's thread: one move after the other.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/memory/spill_disk.hpp"

#include <deque>
#include <future>
#include <utility>

#include <troupe/error.hpp>

#include "actors/memory/host_tiles.hpp"
#include "actors/protocol/clock.hpp"
#include "actors/protocol/phase.hpp"

namespace troupe::detail {

namespace {

std::exception_ptr stopped() {
  return std::make_exception_ptr(error(errc::runtime_stopped, "the runtime was shut down: the disk is closed"));
}

class disk final : public disk_thread, public std::enable_shared_from_this<disk> {
 public:
  disk(disk_options o, wait_table& b, runtime_state& rt) : options_(std::move(o)), board_(b), rt_(rt) {
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
    thread_.start(
        "disk", options_.keep_alive.lock(), [self = shared_from_this()] { self->thread_main(); },
        [this](std::exception_ptr why) { tell_supervisor(std::move(why)); });
  }
  void request_stop() override {
    stopping_.store(true);
    bell_.ring();
  }
  bool wait_ended(std::chrono::steady_clock::time_point deadline) override {
    const bool ended = thread_.wait_ended(deadline);  // if not, the disk does not answer; the actor lives until it does
    if (ended) refuse_all(stopped());                 // orders that a failed thread has left
    return ended;
  }

  // ---- actor
  actor_kind kind() const override { return actor_kind::disk; }
  std::string label() const override { return "disk"; }
  void restart() override { start(); }
  void withdraw(std::exception_ptr why) override;

 private:
  struct order {
    task_record* task;  // null: a discard, or a read whose caller waits
    std::uint64_t offset, bytes;
    std::byte* to = nullptr;
    std::promise<void>* done = nullptr;
  };

  void look_up() override { bell_.ring(); }
  void add(const order&);
  void thread_main();
  void carry_out(const order&);
  void carry_out(task_record&, std::uint64_t offset);
  void copy_out(const order&);
  void refuse(const order&);
  void refuse_all(std::exception_ptr why);

  disk_options options_;
  wait_table& board_;
  runtime_state& rt_;
  std::atomic<std::uint64_t> out_{0}, in_{0};
  trace_lane lane_;

  mailbox<order> orders_;
  bell bell_;
  std::atomic<bool> stopping_{false};
  actor_thread thread_;
  // State of its thread, or of the one that acts for it once that has ended:
  std::deque<order> work_;     // taken out of the mailbox
  std::exception_ptr closed_;  // why it takes no more orders; set before the mailbox is closed
};

void disk::add(const order& o) {
  if (orders_.post_if_open(o) == 0)
    refuse(o);
  else
    o.done ? bell_.ring_now() : bell_.ring();
}

void disk::thread_main() {
  std::vector<order> batch;
  while (!stopping_.load()) {
    if (work_.empty()) {
      check_fault();
      orders_.drain(batch);
      work_.assign(batch.begin(), batch.end());
      batch.clear();
      if (work_.empty()) bell_.sleep_unless([&] { return stopping_.load() || orders_.count() != 0; });
      continue;
    }
    const order next = work_.front();
    work_.pop_front();
    carry_out(next);
  }
  refuse_all(stopped());
  lane_.flush();
  options_.file.reset();
}

void disk::withdraw(std::exception_ptr why) {
  refuse_all(std::make_exception_ptr(error(errc::io_failed, "the disk is given up: " + text_of(why))));
}

// Ends all orders that have not been carried out, and those to come.
void disk::refuse_all(std::exception_ptr why) {
  if (!closed_) closed_ = std::move(why);
  for (const order& o : orders_.close()) work_.push_back(o);
  while (!work_.empty()) {
    const order o = work_.front();
    work_.pop_front();
    refuse(o);
  }
}

void disk::carry_out(const order& o) {
  if (o.task)
    carry_out(*o.task, o.offset);
  else if (o.done)
    copy_out(o);
  else
    options_.file->discard(o.offset, static_cast<std::size_t>(o.bytes));
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
      free_host_tile(rt_, a, tile);
    } else {
      options_.file->read(offset, host_tile(rt_, a, tile, true), bytes);
    }
    (out ? out_ : in_).fetch_add(bytes, std::memory_order_relaxed);
  } catch (...) {
    t.error = std::current_exception();
    if (!out) free_host_tile(rt_, a, tile);
  }
  if (lane_.on()) lane_.add(t.id, begin, ticks(), (t.kernel->name + (" " + a.spec.name)).c_str());
  fulfil(t, board_);
  options_.report_done(t);
}

void disk::refuse(const order& o) {
  if (o.done) o.done->set_exception(closed_);
  if (!o.task) return;
  task_record& t = *o.task;
  if (claim(t)) t.error = closed_;
  fulfil(t, board_);
  options_.report_done(t);
}

}  // namespace

std::shared_ptr<disk_thread> make_disk(disk_options o, wait_table& b, runtime_state& rt) {
  return std::make_shared<disk>(std::move(o), b, rt);
}

}  // namespace troupe::detail
