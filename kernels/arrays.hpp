// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/stored_matrix.hpp"
#include "kernels/stream.hpp"

#include <cstdint>

namespace troupe {

/// Copies and sums of arrays of n values, and of matrices (R, C) that are not
/// transposed. Arrays do not overlap. Elements are independent of each other, so every
/// stream gives the same bits. Copies that round to bf16 are an exception. The CPU
/// turns values too small for a normal fp32 into 0, and a GPU rounds such values. NaNs
/// may differ in bits.
template <class Scalar>
struct arrays {
  /// to = from; values are rounded if only `to` is bf16, widened if only `from` is.
  static void copy(const Scalar* from, std::int64_t n, Scalar* to, stream& stream);
  static void copy(stored_matrix<const Scalar> from, stored_matrix<Scalar> to,
                   stream& stream);

  /// to += from.
  static void add(const Scalar* from, std::int64_t n, Scalar* to, stream& stream);

  /// to = 0.
  static void clear(std::int64_t n, Scalar* to, stream& stream);

  // copy() and add() on the caller's thread, between arrays in the machine's memory.
  // For actors that handle messages while the stream of the rank computes.

  static void copy(const Scalar* from, std::int64_t n, Scalar* to);
  static void add(const Scalar* from, std::int64_t n, Scalar* to);

  /// The sum of n values, added one after another, on the caller's thread. Compiled in
  /// arrays.cpp, because sources of row kernels are compiled with options that reorder
  /// sums.
  static Scalar sum_in_order(const Scalar* from, std::int64_t n);
};

} // namespace troupe
