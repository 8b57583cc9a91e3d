// What this file is for: connections that this process opens, until they are a session or have failed.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <unordered_set>

#include "net/tcp/doorway.hpp"

namespace troupe::net::tcp {

/// On the control thread.
class dialling {
 public:
  explicit dialling(const doorway&);
  ~dialling();

  /// `instead`: of that session, if it stays silent; null: there is none.
  void dial(const endpoint&, std::shared_ptr<session> instead);
  void end();

 private:
  class attempt;
  const doorway& door_;
  std::unordered_set<std::shared_ptr<attempt>> attempts_;
  /// A look-up comes back by this from a thread of its own, perhaps after all is over.
  struct way_back;
  std::shared_ptr<way_back> way_back_;
};

}  // namespace troupe::net::tcp
