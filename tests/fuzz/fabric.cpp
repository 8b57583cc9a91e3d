// What this file is for: what a peer says of its fabric, and of transfers through it, made of any bytes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstring>
#include <list>
#include <map>

#include "net/tcp/fabric_in.hpp"
#include "net/tcp/fabric_note.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace troupe::net;

namespace {

constexpr std::uint64_t body_max = 1u << 20;

// Bodies that have been told to be whole have been written, each byte of them.
void transfers(reader from) {
  std::list<std::vector<std::byte>> all;
  std::map<std::uint64_t, const std::vector<std::byte>*> bodies;
  tcp::fabric_in in;
  std::uint64_t number = 0;
  in.tell(
      [&](std::span<const std::byte>, std::uint64_t bytes) -> pieces {
        if (bytes > body_max) return {};
        all.emplace_back(bytes);
        bodies[number] = &all.back();
        pieces rows;
        const std::size_t row = 64 + number % 5'000;
        for (std::size_t at = 0; at < bytes; at += row)
          rows.push_back(std::span(all.back()).subspan(at, std::min<std::size_t>(row, bytes - at)));
        return rows;
      },
      [](std::span<const std::byte>, bool) {}, [](auto...) {});
  while (from.left() > 0) {
    const auto what = from.fixed<std::uint8_t>();
    number = from.varint();
    if (what % 4 == 0) {
      const std::uint64_t size = from.varint();
      in.offered(number, size, from.bytes());
    } else if (what % 4 == 1) {
      const std::uint64_t offset = from.varint(), bytes = from.varint();
      const auto to = in.destination(number, offset, bytes);
      fuzz::must(to.size() == bytes);
      std::fill(to.begin(), to.end(), std::byte{1});
      if (what < 128) in.placed(number, offset);
    } else if (what % 4 == 2) {
      in.placed(number, from.varint());
    } else {
      in.kept(number);
      const auto& written = bodies.at(number);
      fuzz::must(std::ranges::all_of(*written, [](std::byte b) { return b == std::byte{1}; }));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  fuzz::decodes([&] {
    const auto note = tcp::fabric_note::read(bytes);
    writer to;
    note.write(to);
    fuzz::must(std::ranges::equal(bytes, to.view()));
  });
  fuzz::decodes([&] { transfers(reader(bytes)); });
  return 0;
}
