// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace troupe {

/// How a parameter begins.
enum class beginning : std::uint8_t { zeros, ones, normal, uniform };

} // namespace troupe
