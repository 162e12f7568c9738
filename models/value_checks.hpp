// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Checks of the values of weights, before values are read or written.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace troupe {

/// The first value that is not finite, as "NAME[7] is nan"; empty if all values are
/// finite.
/// \param first the index of the first value in the tensor
std::string not_finite(const std::string& name, std::int64_t first,
                       std::span<const float> values);

/// The first value that is too large for bf16, as "[7] is VALUE"; empty if bf16 holds
/// all values.
/// \pre all values are finite
std::string too_large(std::span<const float> values);

/// The index of the first value whose bits differ in both arrays; absent if all bits
/// are equal.
/// \pre both arrays have the same size
std::optional<std::int64_t> first_apart(std::span<const float> a,
                                        std::span<const float> b);

} // namespace troupe
