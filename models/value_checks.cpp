// SPDX-License-Identifier: BSD-3-Clause
#include "models/value_checks.hpp"

#include "kernels/bf16.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace troupe {

std::string not_finite(const std::string& name, std::int64_t first,
                       std::span<const float> values) {
  const auto position =
    std::ranges::find_if_not(values, [](float x) { return std::isfinite(x); });
  if (position == values.end())
    return {};
  return name + "[" + std::to_string(first + (position - values.begin())) + "] is "
         + std::to_string(*position);
}

std::string too_large(std::span<const float> values) {
  const auto position = std::ranges::find_if_not(
    values, [](float x) { return std::isfinite(fp32_of(bf16_of(x))); });
  if (position == values.end())
    return {};
  return "[" + std::to_string(position - values.begin()) + "] is "
         + std::to_string(*position);
}

std::optional<std::int64_t> first_apart(std::span<const float> a,
                                        std::span<const float> b) {
  const auto bits = [](float x) { return std::bit_cast<std::uint32_t>(x); };
  const auto where = std::ranges::mismatch(a, b, {}, bits, bits).in1;
  if (where == a.end())
    return {};
  return where - a.begin();
}

} // namespace troupe
