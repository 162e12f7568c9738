// SPDX-License-Identifier: BSD-3-Clause
#include "models/float_types.hpp"

#include "kernels/bf16.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

namespace troupe {

namespace {

/// The value of an F16: one sign bit, 5 bits of exponent, 10 of mantissa.
float of_half(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16, exponent = bits >> 10 & 31U,
                      mantissa = bits & 0x3ffU;
  if (exponent == 31)
    return std::bit_cast<float>(sign | 0x7f800000U | mantissa << 13);
  if (exponent > 0)
    return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  const float tiny = std::ldexp(static_cast<float>(mantissa), -24);
  return sign != 0 ? -tiny : tiny;
}

/// The value of an F8_E5M2, which is the upper byte of an F16.
float of_e5m2(std::uint8_t bits) {
  return of_half(static_cast<std::uint16_t>(bits << 8));
}

/// The value of an F8_E4M3: one sign bit, 4 bits of exponent, 3 of mantissa; no
/// infinity, and one NaN of each sign. (Micikevicius et al., "FP8 Formats for Deep
/// Learning", 2022, table 1)
float of_e4m3(std::uint8_t bits) {
  const std::uint32_t sign = (bits & 0x80U) << 24, exponent = bits >> 3 & 15U,
                      mantissa = bits & 7U;
  if (exponent == 15 && mantissa == 7)
    return std::numeric_limits<float>::quiet_NaN();
  if (exponent > 0)
    return std::bit_cast<float>(sign | (exponent + 120) << 23 | mantissa << 20);
  const float tiny = std::ldexp(static_cast<float>(mantissa), -9);
  return sign != 0 ? -tiny : tiny;
}

float of_double(double value) {
  return static_cast<float>(value);
}

template <class Stored>
void widen(const void* from, std::span<float> to, float (*widened)(Stored)) {
  const auto* bytes = static_cast<const char*>(from);
  for (float& value : to) {
    Stored stored;
    std::memcpy(&stored, bytes, sizeof stored);
    value = widened(stored);
    bytes += sizeof stored;
  }
}

} // namespace

int bits_of_type(const std::string& type) {
  static const std::map<std::string, int> bits{
    {"F64", 64},        {"I64", 64},        {"U64", 64},    {"C64", 64},
    {"F32", 32},        {"I32", 32},        {"U32", 32},    {"F16", 16},
    {"BF16", 16},       {"I16", 16},        {"U16", 16},    {"I8", 8},
    {"U8", 8},          {"BOOL", 8},        {"F8_E4M3", 8}, {"F8_E5M2", 8},
    {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"F8_E8M0", 8}, {"F6_E2M3", 6},
    {"F6_E3M2", 6},     {"F4", 4}};
  const auto entry = bits.find(type);
  return entry != bits.end() ? entry->second : 0;
}

bool is_readable_type(const std::string& type) {
  return type == "F64" || type == "F32" || type == "F16" || type == "BF16"
         || type == "F8_E5M2" || type == "F8_E4M3";
}

std::string readable_types() {
  return "F64, F32, F16, BF16, F8_E5M2 and F8_E4M3";
}

void widen_values(const std::string& type, const void* from, std::span<float> to) {
  if (to.empty())
    return;
  if (type == "F32")
    std::memcpy(to.data(), from, to.size_bytes());
  else if (type == "F64")
    widen<double>(from, to, of_double);
  else if (type == "F16")
    widen<std::uint16_t>(from, to, of_half);
  else if (type == "BF16")
    widen<std::uint16_t>(from, to, fp32_of);
  else if (type == "F8_E5M2")
    widen<std::uint8_t>(from, to, of_e5m2);
  else
    widen<std::uint8_t>(from, to, of_e4m3);
}

} // namespace troupe
