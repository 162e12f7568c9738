// SPDX-License-Identifier: BSD-3-Clause
#include "models/data_identity.hpp"

#include <xxhash.h>

#include <new>
#include <utility>

namespace troupe {

std::string to_string(const data_identity& data) {
  if (data.bytes == 0)
    return data.kind;
  return data.kind + ", " + std::to_string(data.bytes) + " bytes, XXH3 "
         + text_of_sum(data.checksum);
}

std::string text_of_sum(std::uint64_t sum) {
  std::string result(16, '0');
  for (auto digit = result.rbegin(); digit != result.rend(); ++digit, sum >>= 4U)
    *digit = "0123456789abcdef"[sum & 15U];
  return result;
}

content_sum::content_sum() : state_(XXH3_createState()) {
  if (!state_)
    throw std::bad_alloc{};
  XXH3_64bits_reset(state_.get());
}

void content_sum::release::operator()(XXH3_state_s* state) const {
  XXH3_freeState(state);
}

void content_sum::add(std::span<const std::byte> bytes) {
  XXH3_64bits_update(state_.get(), bytes.data(), bytes.size());
  bytes_ += std::ssize(bytes);
}

data_identity content_sum::identity(std::string kind) const {
  return {std::move(kind), bytes_, XXH3_64bits_digest(state_.get())};
}

} // namespace troupe
