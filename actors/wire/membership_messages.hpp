// What this file is for: messages of membership as frames.
// SPDX-FileCopyrightText: the troupe authors
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "actors/protocol/membership.hpp"

namespace troupe::detail {

/// The first byte of every frame says what kind it is; these are of membership.
inline constexpr std::byte membership_kind_first{0x01}, membership_kind_last{0x0f};

inline bool is_membership(std::span<const std::byte> frame) {
  return !frame.empty() && frame[0] >= membership_kind_first && frame[0] <= membership_kind_last;
}

std::vector<std::byte> encode(const membership_message&);
/// Throws `error(protocol_error)` for what is not exactly one message.
membership_message decode_membership(std::span<const std::byte> frame);

}  // namespace troupe::detail
