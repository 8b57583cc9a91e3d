// What this file is for: what OpenSSL says went wrong, in words that help.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

struct ssl_st;

namespace troupe::net::tcp {

/// The oldest entry of this thread's error queue, which is empty afterwards.
std::string openssl_text();
/// Why a connection's handshake, reading or writing failed.
std::string openssl_text(ssl_st*);

}  // namespace troupe::net::tcp
