// The hidden modes of troupe-bench: the processes at the other end.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bench {

/// "worker NAME SECRET|- LISTEN|- JOIN", as tests/support/nodes.hpp has it. Returns the exit code.
int work_as_node(const std::vector<std::string>& words);
/// By this process so far, a KiB or more at a time; nothing unless nodes/copies.cpp was loaded before all others.
std::optional<std::uint64_t> bytes_copied();
/// "asio-peer ADDRESS plain|tls FOLDER": says where it listens, and answers the contender `asio`.
int answer_asio(const std::vector<std::string>& words);

}  // namespace bench
