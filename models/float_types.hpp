// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The types of safetensors' format: their sizes, and the values of the floating ones.

#include <cstdint>
#include <span>
#include <string>

namespace troupe {

/// Bits of a value; 0: the format has no type of that name.
int bits_of_type(const std::string& type);

/// Whether widen_values reads it: F64, F32, F16, BF16, F8_E5M2 or F8_E4M3. The others
/// of the format hold no weights by themselves: F8_E8M0, F6_E2M3, F6_E3M2 and F4 need
/// scales of other tensors, and the FNUZ types are of some GPUs.
bool is_readable_type(const std::string& type);

/// "F64, F32, ..": the types that is_readable_type() accepts.
std::string readable_types();

/// Writes little-endian values of a type as fp32. Those of F64 are rounded to nearest,
/// those of all others stay as they are.
/// \param from as many values as `to` has, at any address \pre is_readable_type(type)
void widen_values(const std::string& type, const void* from, std::span<float> to);

} // namespace troupe
