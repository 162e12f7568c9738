// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The types of the safetensors format: sizes in bits, and the values of floating-point
// types.

#include <cstdint>
#include <span>
#include <string>

namespace troupe {

/// Bits of a value; 0 if the format has no type of this name.
int bits_of_type(const std::string& type);

/// True if widen_values reads the type: F64, F32, F16, BF16, F8_E5M2 or F8_E4M3. The
/// format's other types hold no weights by themselves. F8_E8M0, F6_E2M3, F6_E3M2 and F4
/// need scales of other tensors, and only some GPUs have the FNUZ types.
bool is_readable_type(const std::string& type);

/// The types that is_readable_type() accepts, as text: "F64, F32, ..".
std::string readable_types();

/// Writes little-endian values of a type as fp32. Values of F64 are rounded to nearest;
/// values of all other types stay exact.
/// \param from to.size() values, at any address
/// \pre is_readable_type(type)
void widen_values(const std::string& type, const void* from, std::span<float> to);

} // namespace troupe
