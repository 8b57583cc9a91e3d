// What this file is for: strangers that connect: how many may wait, and which of them come in.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "net/tcp/doorway.hpp"
#include "net/tcp/hello.hpp"

namespace troupe::net::tcp {

/// Sockets that listen, from when they are made until they are closed.
class listeners {
 public:
  listeners() = default;
  ~listeners();
  listeners(const listeners&) = delete;
  listeners& operator=(const listeners&) = delete;

  /// Throws `error(io_failed)`, and `error(bad_argument)` for what is not loopback where it has to be.
  void open(const std::vector<endpoint>&, bool loopback_only);
  /// With the ports that they got.
  const std::vector<endpoint>& told() const { return told_; }
  const std::vector<int>& sockets() const { return sockets_; }
  void close();

 private:
  std::vector<int> sockets_;
  std::vector<endpoint> told_;
};

/// On the bulk thread: what strangers make it compute may delay bodies, but not control. Whether a member is to have a
/// session is asked of the control thread.
class admission {
 public:
  admission(const doorway&, listeners&);
  ~admission();

  void begin();
  /// Closes what listens and what waits.
  void end();

 private:
  struct half {
    std::shared_ptr<talk> control;
    hello said;
  };
  using key = std::pair<node_id, std::uint64_t>;

  void wait_for(std::size_t which);
  void accept_some(std::size_t which);
  bool out_of_descriptors(int listening, int code);
  void greet(int socket, const address&);
  void heard(const std::shared_ptr<talk>&, std::span<const std::byte>);
  void judge(const std::shared_ptr<talk>&, const hello&);
  /// On the control thread.
  void rule(const std::weak_ptr<talk>&, const hello&);
  void ruled(const std::shared_ptr<talk>&, const hello&, hello_result);
  void join(const std::shared_ptr<talk>&, const hello&);
  void admit(const half& control, const std::shared_ptr<talk>& bulk);
  /// The session that was to be will not be.
  void undo(const hello&);
  void refuse(const std::shared_ptr<talk>&, hello_result, std::string text);
  void forget(talk*);
  /// Sends a stranger away that has proven nothing, one from there if it is not empty; false: there is none.
  bool send_away_oldest(const std::string& from);
  /// Notes that a stranger has shown that it is a member.
  void known(talk*);

  const doorway& door_;
  listeners& listeners_;
  std::vector<std::unique_ptr<watch>> watches_;
  std::unordered_map<talk*, std::shared_ptr<talk>> waiting_;
  std::map<std::string, int> waiting_each_;  ///< by neighbourhood
  struct stranger {
    talk* who;
    std::string from;
  };
  std::list<stranger> strangers_;  ///< those that wait and have proven nothing yet; the oldest first
  std::map<key, half> halves_;
  std::unordered_map<talk*, hello> joining_;  ///< bulk connections whose session is to be
  int reserve_ = -1;                          ///< a descriptor to give up when there is no other
  bool ended_ = false;
};

}  // namespace troupe::net::tcp
