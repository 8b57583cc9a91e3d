// What this file is for: a runtime whose inside tests can see.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <memory>
#include <utility>

#include <troupe/array_maker.hpp>
#include <troupe/submitter.hpp>

#include "runtime/engine.hpp"

namespace test {

/// A runtime whose inside can be seen.
class open_runtime : public troupe::array_maker<open_runtime>, public troupe::submitter<open_runtime> {
 public:
  explicit open_runtime(const troupe::options& o, troupe::detail::runtime_environment around = {})
      : engine_(std::make_shared<troupe::detail::engine>(o, std::move(around))) {
    engine_->start();
  }
  ~open_runtime() { engine_->shutdown(std::chrono::steady_clock::now() + std::chrono::seconds(20)); }
  troupe::detail::target submission_target() const { return {engine_.get(), nullptr}; }
  troupe::detail::engine& inside() const { return *engine_; }

 private:
  std::shared_ptr<troupe::detail::engine> engine_;
};

}  // namespace test
