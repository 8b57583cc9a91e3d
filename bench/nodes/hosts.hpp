// Where the processes of a benchmark of nodes run: on loopback, or in two namespaces with a veth pair; on which cores.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "tests/support/processes.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace bench {

enum class route { loopback, veth };

/// Why there is no way by veth here; empty if there is. Made once for the whole run.
std::string why_no_veth();

/// Returns the address of host 0, where this process is, or host 1.
std::string address_of(route, int host);
/// For a process that is to run on host 1.
test::child_options on_other_host(route);
/// Runs `f` on host 0: what it opens, and threads that it starts, stay there. Throws what `f` throws.
void on_this_host(route, const std::function<void()>& f);

/// The cores that this process may use, and what they are used for.
std::vector<int> cores();
/// Until it ends, the calling thread, the threads and the processes that it starts are bound to these cores.
class bound_to {
 public:
  explicit bound_to(const std::vector<int>& some);
  bound_to(const bound_to&) = delete;
  bound_to& operator=(const bound_to&) = delete;
  ~bound_to();

 private:
  std::vector<int> before_;
};

/// A folder that ends with the process.
class own_folder {
 public:
  own_folder();
  own_folder(const own_folder&) = delete;
  own_folder& operator=(const own_folder&) = delete;
  ~own_folder();
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// The secret of all nodes of this run, a file.
std::string cluster_secret();

}  // namespace bench
