// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/on_host/tensor_core.hpp"

#include "kernels/cuda/on_host/block.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace troupe::on_host {

namespace {

constexpr unsigned lanes = 32;

/// One value for each lane.
using of_lanes = std::array<std::uint64_t, lanes>;

of_lanes gather(std::uint64_t value) {
  of_lanes result;
  std::copy_n(all_in_warp(value), lanes, result.begin());
  return result;
}

/// Collects two 32-bit words of each lane.
of_lanes gather(unsigned first, unsigned second) {
  return gather(first | (std::uint64_t{second} << 32));
}

/// The bf16 at index k % 2 of one of the two words of a lane.
float bf16_at(const of_lanes& from, unsigned lane, unsigned word, unsigned k) {
  const auto bits = static_cast<std::uint32_t>(from[lane] >> (32 * word + 16 * (k % 2)))
                    << 16;
  float result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

} // namespace

std::array<const unsigned short*, 4> matrix_rows(const unsigned short* address,
                                                 unsigned row) {
  const auto addresses = gather(reinterpret_cast<std::uintptr_t>(address));
  std::array<const unsigned short*, 4> result;
  for (unsigned m = 0; m < 4; ++m)
    result[m] = reinterpret_cast<const unsigned short*>(addresses[8 * m + row]);
  return result;
}

std::array<float, 4> multiply_in_warp(const mma_operands& operands) {
  // Words 0 and 1 of `a` have columns 0 to 7, of rows g and g + 8; words 2 and 3 have
  // columns 8 to 15. Words of b have rows 0 to 7 and 8 to 15, of column g.
  const of_lanes a[2] = {gather(operands.a[0], operands.a[1]),
                         gather(operands.a[2], operands.a[3])},
                 b = gather(operands.b[0], operands.b[1]);
  const auto group = lane() / 4, pair = lane() % 4;
  std::array<float, 4> sums;
  for (unsigned i = 0; i < 4; ++i) {
    float sum = 0;
    for (unsigned k = 0; k < 16; ++k) {
      const auto holds = k % 8 / 2;
      sum += bf16_at(a[k / 8], 4 * group + holds, i / 2, k)
             * bf16_at(b, 4 * (2 * pair + i % 2) + holds, k / 8, k);
    }
    sums[i] = operands.c[i] + sum;
  }
  return sums;
}

} // namespace troupe::on_host
