// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace troupe {

/// What is stored between the arithmetic: activations and their gradients, and the
/// operands of products. Sums, and the weights that are updated, are fp32.
enum class precision : std::uint8_t { fp32, bf16 };

} // namespace troupe
