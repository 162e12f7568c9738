// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Checks of the values of weights, before they are read or written.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace troupe {

/// The first value that is not finite, as "NAME[7] is nan"; empty if there is none.
/// \param first the number of the first of the values in their tensor
std::string not_finite(const std::string& name, std::int64_t first,
                       std::span<const float> values);

/// The first of some finite values that bf16 does not hold, as "[7] is 3.4e38"; empty
/// if there is none.
std::string too_large(std::span<const float> values);

/// The first of some values whose bits differ; absent if all are equal.
std::optional<std::int64_t> first_apart(std::span<const float> a,
                                        std::span<const float> b);

} // namespace troupe
