// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/checksum.hpp"

#include <xxhash.h>

#include <new>

namespace troupe {

running_checksum::running_checksum() : state_(XXH3_createState()) {
  if (!state_)
    throw std::bad_alloc{};
  restart();
}

void running_checksum::release::operator()(XXH3_state_s* state) const {
  XXH3_freeState(state);
}

void running_checksum::restart() {
  XXH3_64bits_reset(state_.get());
}

void running_checksum::add(std::span<const std::byte> bytes) {
  XXH3_64bits_update(state_.get(), bytes.data(), bytes.size());
}

std::uint64_t running_checksum::value() const {
  return XXH3_64bits_digest(state_.get());
}

} // namespace troupe
