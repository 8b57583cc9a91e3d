// The hidden modes of troupe-bench: the processes at the other end.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace bench {

/// "worker NAME SECRET|- LISTEN|- JOIN", as tests/support/nodes.hpp has it. Returns the exit code.
int work_as_node(const std::vector<std::string>& words);
/// "asio-peer ADDRESS plain|tls FOLDER": says where it listens, and answers the contender `asio`.
int answer_asio(const std::vector<std::string>& words);

}  // namespace bench
