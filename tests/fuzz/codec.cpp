// What this file is for: the reader of frames, told to read anything from any bytes.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <string>

#include "net/codec.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace troupe::net;

namespace {

// Numbers have one form: what is read is written with the same bytes.
template <class Read, class Write>
void same_again(reader& from, std::span<const std::byte> all, Read&& read, Write&& write) {
  const std::size_t at = all.size() - from.left();
  const auto value = read(from);
  writer to;
  write(to, value);
  const auto used = all.subspan(at, all.size() - from.left() - at);
  fuzz::must(std::ranges::equal(used, to.view()));
}

void step(std::uint8_t what, reader& from, std::span<const std::byte> all) {
  const std::size_t before = from.left();
  switch (what % 11) {
    case 0:
      from.fixed<std::uint8_t>();
      break;
    case 1:
      from.fixed<std::uint16_t>();
      break;
    case 2:
      from.fixed<double>();
      break;
    case 3:
      same_again(
          from, all, [](reader& r) { return r.varint(); }, [](writer& w, auto v) { w.varint(v); });
      break;
    case 4:
      same_again(
          from, all, [](reader& r) { return r.signed_varint(); }, [](writer& w, auto v) { w.signed_varint(v); });
      break;
    case 5:
      same_again(
          from, all, [](reader& r) { return r.bytes(); }, [](writer& w, auto v) { w.bytes(v); });
      break;
    case 6:
      same_again(
          from, all, [](reader& r) { return r.text(100); }, [](writer& w, const auto& v) { w.text(v); });
      break;
    case 7:
      fuzz::must(from.at_most(1000, "a number") <= 1000);
      break;
    case 8:
      fuzz::must(from.count(8, "a count") <= before / 8);
      break;
    case 9:
      fuzz::must(from.raw(what / 11).size() == what / 11u);
      break;
    case 10:
      from.end();
      break;
  }
  fuzz::must(from.left() <= before);
}

}  // namespace

// The first half says what is read, the second is what it is read from.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto text = bytes.subspan(size / 2);
  reader from(text);
  fuzz::decodes([&] {
    for (std::size_t i = 0; i < size / 2; ++i) step(data[i], from, text);
  });
  return 0;
}
