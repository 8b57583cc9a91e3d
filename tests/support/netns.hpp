// What this file is for: a network of a test's own: hosts with addresses behind a switch, that can be cut and slowed.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
//
// Hosts are network namespaces without names: they exist as long as somebody has them open, so nothing of them is left
// however the test ends. All is done by `ip`, `nft` and `tc`, which a tests needs beside the right to do so:
//
//   if (const auto why = test::network::why_not(); !why.empty()) GTEST_SKIP() << why;
//   test::network net(3);
//   test::child c({program}, net.on(1));
#pragma once

#include <string>
#include <vector>

#include "tests/support/processes.hpp"

namespace test {

class network {
 public:
  /// Why there cannot be one here; empty if there can. To be tested before the first is made.
  static std::string why_not();

  /// Hosts 0, 1, ... Each has loopback and one interface `eth0`, up, with an address of 24 bits in one net.
  explicit network(int hosts);
  network(const network&) = delete;
  network& operator=(const network&) = delete;
  ~network();

  int size() const { return static_cast<int>(hosts_.size()); }
  std::string address(int host) const { return "10.77.0." + std::to_string(host + 1); }
  /// For a child that is to run on a host.
  child_options on(int host) const;
  /// Runs a command there; throws if it fails. Gives its output.
  std::string run_on(int host, std::vector<std::string> words) const;

  /// Whatever `from` sends to `to` is lost from now on; nobody is told.
  void drop(int from, int to);
  /// Nothing passes between the two groups any more, in either direction.
  void cut(const std::vector<int>& some, const std::vector<int>& others);
  /// A share of what arrives at the host is lost, 0 to 100.
  void lose(int host, int percent);
  /// All that was dropped, cut or lost passes again.
  void heal();

  /// Pulls the plug of a host: its interface is down. And puts it in again.
  void unplug(int host);
  void plug(int host);

  /// Has what the host sends leave at so many bits a second; 0: as fast as it can.
  void slow_down(int host, long bits_per_second);

 private:
  void rule(int host, const std::string& text) const;

  std::vector<int> hosts_;  ///< descriptors of namespaces
  int hub_ = -1;
};

}  // namespace test
