// What this file is for: a client: the thread that carries out one part of a plan and notes what comes of it.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <future>
#include <map>
#include <memory>
#include <variant>
#include <vector>

#include "handles.hpp"

namespace mixed {

class client {
 public:
  client(session&, std::size_t number, const troupe::array<word, 1>& common);

  /// Makes the arrays, calls everything and asks all futures; on a thread of its own.
  void run();
  /// Returns what came of each operation.
  const std::vector<observation>& observations() const { return observed_; }
  /// Returns what is in each array now; nothing where a reader gets an error.
  std::vector<contents> read_all();
  /// Lets all handles go.
  void drop();
  /// Memory that arrays had borrowed: of those that were renewed, in order, then of those that were not, by number.
  const std::vector<std::unique_ptr<std::vector<word>>>& renewed_memory() const { return renewed_; }
  const std::map<int, std::unique_ptr<std::vector<word>>>& memory() const { return memory_; }

 private:
  using view_variant =
      std::variant<std::monostate, troupe::host_view<word, 1>, troupe::host_view<word, 2>, troupe::host_view<word, 3>,
                   troupe::host_view<word, 4>, troupe::host_view<const word, 1>, troupe::host_view<const word, 2>,
                   troupe::host_view<const word, 3>, troupe::host_view<const word, 4>>;
  struct opened {
    const operation* op = nullptr;
    std::size_t number = 0;
    word seen = 0;
    view_variant view{};
  };

  any_array make(int slot, const array_plan&);
  void carry_out(std::size_t number, const operation&);
  void call(std::size_t number, const operation&);
  void host(std::size_t number, const operation&);
  void open(std::size_t number, const operation&);
  void close();
  void try_read(std::size_t number, const operation&);
  void continue_after(std::size_t number, const operation&);
  void await(std::size_t number, const operation&);
  void be_wrong(std::size_t number, const operation&);
  void count(const operation&);
  void look(const operation&);
  void record();
  bool gives_contents(std::size_t) const;

  session& all_;
  const client_plan& plan_;
  std::size_t number_;
  troupe::array<word, 1> common_;
  handles have_{};
  std::vector<troupe::graph> graphs_{};
  std::vector<any_future> futures_{};
  std::map<std::size_t, std::future<observation>> awaited_{};
  std::vector<observation> observed_{};
  std::vector<opened> open_{};
  std::map<int, std::unique_ptr<std::vector<word>>> memory_{};
  std::vector<std::unique_ptr<std::vector<word>>> renewed_{};
};

/// Returns what a future says: waits for it.
observation outcome_of(const any_future&);
/// The exception that is being handled.
observation current_error();

}  // namespace mixed
