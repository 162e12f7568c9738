// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/wire/codec.hpp"

#include <span>
#include <stdexcept>
#include <vector>

namespace fuzz {

/// \throws std::logic_error if what was decoded is not the same after another journey
template <class Decode>
bool survives(std::span<const unsigned char> from, Decode decode) {
  const auto first = decode(from);
  if (!first) {
    if (first.error().empty())
      throw std::logic_error{"bytes were refused without a word"};
    return false;
  }
  const auto bytes = troupe::wire::encode(*first);
  const auto second = decode(bytes);
  if (!second)
    throw std::logic_error{"what was decoded cannot be sent: " + second.error()};
  if (troupe::wire::encode(*second) != bytes)
    throw std::logic_error{"what was decoded changes on its way"};
  return true;
}

/// Whether bytes are a mail; an even first byte: of actors, else of nodes. They may be
/// anything.
/// \throws std::logic_error if the codec breaks its word
inline bool is_mail(std::span<const unsigned char> input) {
  if (input.empty())
    return false;
  // A copy, so that a sanitizer sees a read behind its end, at an address of any kind.
  const std::vector<unsigned char> copy(input.begin() + 1, input.end());
  return input[0] % 2 == 0 ? survives(copy, troupe::wire::decode_actor_message)
                           : survives(copy, troupe::wire::decode_node_message);
}

} // namespace fuzz
