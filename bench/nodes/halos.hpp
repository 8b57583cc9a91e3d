// Bytes that stencils move between nodes and between devices, beside those of their halos.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <troupe/box.hpp>

namespace bench {

/// Steps of a five-point stencil on `side` x `side` numbers that nothing compresses, on 2 or 4 nodes, which have half
/// of the rows or a quadrant each. Returns the bytes that have gone over the wire in a step, messages included, for
/// each byte of elements that a node needs of others. Throws `wrong_answer` if the result is not that of a serial run.
double halo_bytes_of_nodes(int nodes, troupe::index_t side, bool recorded);

/// The same on two simulated devices that do not reach each other's memory, half of the rows each: bytes of copies to
/// and from the host, for each byte of the halo that a device sends or gets.
double halo_bytes_of_devices(troupe::index_t side);

}  // namespace bench
