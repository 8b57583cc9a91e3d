// What this file is for: announcements of discovery made of any bytes: signed by a stranger, and by a broken member.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#include <vector>

#include "net/discovery/datagram.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace troupe::net;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const credentials::secret_bytes secret{1, 2, 3};
  static datagram_signer signer("c", {secret});
  static const cluster_hash cluster = hash_of_cluster("c");
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);

  announcement a;
  if (signer.read(bytes, a) == datagram_result::good) {
    // Only what was in the corpus already, or a key that has been guessed.
    fuzz::must(size <= datagram_max);
  }
  announcement b;
  if (read_announcement(bytes, cluster, b) != datagram_result::good) return 0;
  fuzz::must(b.listens_on.size() <= announced_max);
  for (const endpoint& e : b.listens_on) fuzz::must(e.port != 0 && e.host.size() <= 255);
  // A datagram that reads well is written the same way again, if it fits into a datagram.
  const auto again = write_announcement(b, cluster);
  if (size + mac_bytes <= datagram_max) fuzz::must(std::vector(bytes.begin(), bytes.end()) == again);
  announcement c;
  fuzz::must(signer.read(signer.write(b), c) == datagram_result::good);
  fuzz::must(c.node == b.node && c.counter == b.counter && c.incarnation == b.incarnation);
  return 0;
}
