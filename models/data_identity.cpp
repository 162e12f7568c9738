// SPDX-License-Identifier: BSD-3-Clause
#include "models/data_identity.hpp"

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

void content_sum::add(std::span<const std::byte> bytes) {
  sum_.add(bytes);
  bytes_ += std::ssize(bytes);
}

data_identity content_sum::identity(std::string kind) const {
  return {std::move(kind), bytes_, sum_.value()};
}

} // namespace troupe
