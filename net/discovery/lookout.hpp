// What this file is for: the thread that looks at seeds, a file and names, again and again.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "net/discovery.hpp"
#include "net/discovery/lists.hpp"
#include "net/discovery/wake.hpp"

namespace troupe::net {

/// Gives all that it knows in each round: what a file held last, and what a name had, stay when they cannot be read.
class lookout {
 public:
  /// Reads the file once; throws like `discovery::start`.
  lookout(const discovery_options&, std::function<void(std::vector<endpoint>)> found);
  lookout(const lookout&) = delete;
  lookout& operator=(const lookout&) = delete;
  ~lookout();

  std::vector<std::string> problems() const;

 private:
  void run();
  void look_at_file();
  void look_at(const endpoint& name);
  void set_problem(const std::string& of, std::string what);

  const std::vector<endpoint> seeds_, names_;
  const std::chrono::milliseconds every_;
  const std::function<void(std::vector<endpoint>)> found_;
  std::optional<address_file> file_;
  std::vector<endpoint> in_file_;
  std::map<endpoint, std::vector<endpoint>> resolved_;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> problems_;
  wake_up stop_;
  std::thread thread_;
};

}  // namespace troupe::net
