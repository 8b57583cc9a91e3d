// What this file is for: the frame of tasks that is being written for a node: arrays it has not heard of, then tasks.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>

#include "actors/wire/task_messages.hpp"
#include "net/codec.hpp"

namespace troupe::detail {

/// Gathers tasks, and the arrays that they name for the first time, until they are sent as one frame.
///
/// A part of a node's actor, under the actor's lock.
class task_frame {
 public:
  /// A frame is sent when it has grown so large.
  static constexpr std::size_t bytes_max = 48u << 10;

  void add(const wire::array_descriptor& a) {
    wire::put(arrays_, a);
    ++array_count_;
  }
  /// Adds a task; returns its bytes, which stay until the next call of anything here.
  std::span<const std::byte> add(const wire::task_descriptor& t) {
    last_ = tasks_.size();
    try {
      wire::put(tasks_, t);
    } catch (...) {
      tasks_.cut(last_);
      throw;
    }
    ++task_count_;
    return tasks_.view().subspan(last_);
  }
  /// Takes the task that was added last out again.
  void drop_last() {
    tasks_.cut(last_);
    --task_count_;
  }
  /// Returns a descriptor to fill in for the next task; its memory is that of the one before.
  wire::task_descriptor& blank_card() {
    clear(card_);
    inside_ = 0;
    return card_;
  }
  /// Counts bytes of boxes that are put into the next task's message.
  void add_inside(std::size_t bytes) { inside_ += bytes; }
  std::size_t inside() const { return inside_; }
  bool is_empty() const { return task_count_ == 0 && array_count_ == 0; }
  bool is_full() const { return tasks_.size() + arrays_.size() >= bytes_max; }
  /// Returns the frame, and begins another one.
  net::writer take() {
    net::writer frame;
    frame.fixed(wire::kind::tasks);
    frame.varint(array_count_);
    frame.raw(arrays_.view().data(), arrays_.size());
    frame.varint(task_count_);
    frame.raw(tasks_.view().data(), tasks_.size());
    arrays_.clear();
    tasks_.clear();
    array_count_ = task_count_ = 0;
    return frame;
  }

 private:
  net::writer arrays_, tasks_;
  std::size_t array_count_ = 0, task_count_ = 0;
  std::size_t last_ = 0;    // where the last task begins in tasks_
  std::size_t inside_ = 0;  // bytes of boxes in card_
  wire::task_descriptor card_;
};

}  // namespace troupe::detail
