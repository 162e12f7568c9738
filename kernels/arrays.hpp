// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/stored_matrix.hpp"
#include "kernels/stream.hpp"

#include <cstdint>

namespace troupe {

/// Copies and sums of arrays of n values, and of matrices (R, C) that are not
/// transposed. Arrays do not overlap. Elements do not depend on each other, so the bits
/// are the same on every stream.
template <class Scalar>
struct arrays {
  /// to = from; rounded, if only `to` is bf16.
  static void copy(const Scalar* from, std::int64_t n, Scalar* to, stream& on);
  static void copy(stored_matrix<const Scalar> from, stored_matrix<Scalar> to,
                   stream& on);

  /// to += from.
  static void add(const Scalar* from, std::int64_t n, Scalar* to, stream& on);

  /// to = 0.
  static void clear(std::int64_t n, Scalar* to, stream& on);

  // The same on the caller's thread, between arrays of the machine's memory: for
  // actors, which handle mail while the stream of their rank computes.

  static void copy(const Scalar* from, std::int64_t n, Scalar* to);
  static void add(const Scalar* from, std::int64_t n, Scalar* to);
};

} // namespace troupe
