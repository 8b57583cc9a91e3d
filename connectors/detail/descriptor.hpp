// What this file is for: an open file or socket, closed with the object.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Not for users.
#pragma once

#include <unistd.h>

#include <utility>

namespace troupe::connectors::detail {

class descriptor {
 public:
  descriptor() = default;
  explicit descriptor(int d) : number_(d) {}
  descriptor(descriptor&& o) noexcept : number_(std::exchange(o.number_, -1)) {}
  descriptor& operator=(descriptor&& o) noexcept {
    std::swap(number_, o.number_);
    return *this;
  }
  ~descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int get() const { return number_; }

 private:
  int number_ = -1;
};

}  // namespace troupe::connectors::detail
