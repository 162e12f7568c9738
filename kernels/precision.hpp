// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace troupe {

/// The type of stored values: activations, gradients of activations, and the operands
/// of products. Sums of products, and the weights that updates write, are fp32.
enum class precision : std::uint8_t { fp32, bf16 };

} // namespace troupe
