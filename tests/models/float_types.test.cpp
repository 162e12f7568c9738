// SPDX-License-Identifier: BSD-3-Clause
// Values of floating types computed from the definitions: sign, exponent, mantissa.

#include "models/float_types.hpp"

#include <catch2/catch_test_macros.hpp>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace troupe::float_types_test {

namespace {

/// (-1)^sign 2^(exponent - bias) 1.mantissa, without the hidden one at exponent 0.
double defined(std::uint32_t bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const auto mantissa = static_cast<double>(bits & ((1U << mantissa_bits) - 1));
  const int exponent =
    static_cast<int>(bits >> mantissa_bits & ((1U << exponent_bits) - 1));
  const double sign = (bits >> (exponent_bits + mantissa_bits) & 1U) != 0 ? -1 : 1;
  const double fraction = std::ldexp(mantissa, -mantissa_bits);
  return exponent == 0 ? sign * std::ldexp(fraction, 1 - bias)
                       : sign * std::ldexp(1 + fraction, exponent - bias);
}

template <class Stored>
float widened(const std::string& type, Stored stored) {
  char bytes[1 + sizeof stored]; // at an odd address
  std::memcpy(bytes + 1, &stored, sizeof stored);
  float result = 0;
  widen_values(type, bytes + 1, {&result, 1});
  return result;
}

bool same_bits(float a, double b) {
  return std::bit_cast<std::uint32_t>(a)
         == std::bit_cast<std::uint32_t>(static_cast<float>(b));
}

} // namespace

TEST_CASE("each half is the number that its bits define", "[float_types]") {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = widened("F16", static_cast<std::uint16_t>(bits));
    if ((bits & 0x7c00U) != 0x7c00U)
      wrong += !same_bits(value, defined(bits, 5, 10));
    else if ((bits & 0x3ffU) != 0)
      wrong += !std::isnan(value);
    else
      wrong += value != (bits < 0x8000U ? INFINITY : -INFINITY);
  }
  CHECK(wrong == 0);
  CHECK(widened("F16", std::uint16_t{0x3555}) == 0.333251953125F);
  CHECK(widened("F16", std::uint16_t{0x7bff}) == 65504);
}

TEST_CASE("each number of 8 bits is the one that its bits define", "[float_types]") {
  for (std::uint32_t bits = 0; bits < 0x100; ++bits) {
    const auto byte = static_cast<std::uint8_t>(bits);
    const float e5m2 = widened("F8_E5M2", byte), e4m3 = widened("F8_E4M3", byte);
    if ((bits & 0x7cU) != 0x7cU)
      CHECK(same_bits(e5m2, defined(bits, 5, 2)));
    else
      CHECK(((bits & 3U) == 0 ? std::isinf(e5m2) : std::isnan(e5m2)));
    if ((bits & 0x7fU) != 0x7fU)
      CHECK(same_bits(e4m3, defined(bits, 4, 3)));
    else
      CHECK(std::isnan(e4m3));
  }
  CHECK(widened("F8_E4M3", std::uint8_t{0x7e}) == 448); // the largest value
  CHECK(widened("F8_E5M2", std::uint8_t{0x7b}) == 57344);
}

TEST_CASE("numbers of 64 bits are rounded to nearest", "[float_types]") {
  CHECK(widened("F64", 0.1) == 0.1F);
  CHECK(widened("F64", 1 + std::ldexp(1, -24)) == 1); // halfway: to even
  CHECK(widened("F64", 1 + std::ldexp(3, -24)) == 1 + std::ldexp(1.0F, -22));
  CHECK(widened("F64", -std::ldexp(1, -149))
        == -std::numeric_limits<float>::denorm_min());
  CHECK(std::isinf(widened("F64", 1e39)));
  CHECK(widened("F32", 0.1F) == 0.1F);
  CHECK(widened("BF16", std::uint16_t{0xbf01}) == -0.50390625);
}

TEST_CASE("types have the sizes that the format's documents name", "[float_types]") {
  for (const auto& [type, bits] : {std::pair{"F64", 64},
                                   {"F32", 32},
                                   {"F16", 16},
                                   {"BF16", 16},
                                   {"F8_E5M2", 8},
                                   {"F8_E4M3", 8}}) {
    CHECK(bits_of_type(type) == bits);
    CHECK(is_readable_type(type));
    CHECK(readable_types().find(type) != std::string::npos);
  }
  for (const auto& [type, bits] : {std::pair{"F8_E8M0", 8},
                                   {"F6_E2M3", 6},
                                   {"F6_E3M2", 6},
                                   {"F4", 4},
                                   {"I8", 8}}) {
    CHECK(bits_of_type(type) == bits);
    CHECK_FALSE(is_readable_type(type));
  }
  CHECK(bits_of_type("F7") == 0);
}

} // namespace troupe::float_types_test
