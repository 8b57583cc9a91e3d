// What this file is for: what nodes say to each other about tasks and data, made of any bytes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include "actors/wire/node_messages.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace troupe;
using namespace troupe::detail;

namespace {

// A message that has been decoded, encoded and decoded again says the same.
template <class T, class F>
void says_the_same(const T& what, F&& decode) {
  net::writer once, twice;
  wire::put(once, what);
  net::reader again(once.view().subspan(1));
  wire::put(twice, decode(again));
  fuzz::must(once.take() == twice.take());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  fuzz::decodes([&] {
    net::reader from(bytes);
    switch (wire::kind_of(bytes)) {
      case wire::kind::node_descriptor:
        (void)from.fixed<wire::kind>();
        says_the_same(wire::take_node_descriptor(from), wire::take_node_descriptor);
        break;
      case wire::kind::tasks:
        (void)from.fixed<wire::kind>();
        says_the_same(wire::take_tasks(from), wire::take_tasks);
        break;
      case wire::kind::done:
        (void)from.fixed<wire::kind>();
        wire::take_done(from);
        break;
      case wire::kind::pull:
        (void)from.fixed<wire::kind>();
        says_the_same(wire::take_pull(from), wire::take_pull);
        break;
      case wire::kind::cannot_pull:
        (void)from.fixed<wire::kind>();
        says_the_same(wire::take_pull_refusal(from), wire::take_pull_refusal);
        break;
      case wire::kind::gaps:
        (void)from.fixed<wire::kind>();
        wire::take_gaps(from);
        break;
      case wire::kind::fetch_in:
      case wire::kind::fetch_home:
      case wire::kind::snapshot:
      case wire::kind::lend:
      case wire::kind::unfilled:
        (void)from.fixed<wire::kind>();
        wire::take_requests(from);
        break;
      case wire::kind::load:
        (void)from.fixed<wire::kind>();
        says_the_same(wire::take_load(from), wire::take_load);
        break;
      case wire::kind::described:
        (void)from.fixed<wire::kind>();
        says_the_same(wire::take_self(from), wire::take_self);
        break;
      case wire::kind::ping:
      case wire::kind::pong:
      case wire::kind::describe:
        (void)from.fixed<wire::kind>();
        wire::take_number(from);
        break;
      default:
        (void)from.fixed<wire::kind>();
        wire::take_numbers(from);
    }
  });
  return 0;
}
