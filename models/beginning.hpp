// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace troupe {

/// The distribution of a parameter's initial values.
enum class beginning : std::uint8_t { zeros, ones, normal, uniform };

} // namespace troupe
