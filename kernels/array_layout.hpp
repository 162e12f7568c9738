// SPDX-License-Identifier: BSD-3-Clause
// Places the arrays of a kernel or a layer one after another in one allocation.
#pragma once

#include "kernels/memory.hpp"
#include "kernels/stored_matrix.hpp"

namespace troupe {

/// Number of Scalars that hold `values` values of the type `stored`, rounded up. Two
/// values of bf16 fit one float, and four fit one double.
template <class Scalar>
constexpr std::int64_t stored_size(std::int64_t values, precision stored) {
  if (stored == precision::fp32)
    return values;
  constexpr std::int64_t in_one = sizeof(Scalar) / sizeof(bf16);
  return (values + in_one - 1) / in_one;
}

/// A matrix view of an array of stored values, rows without gaps. Owns nothing.
template <class Scalar, class Memory>
stored_matrix<Scalar> stored_at(Memory* data, std::int64_t rows, std::int64_t columns,
                                precision stored) {
  stored_matrix<Scalar> result;
  result.data = data;
  result.rows = rows;
  result.columns = columns;
  result.stride = columns;
  result.is_bf16 = stored == precision::bf16;
  return result;
}

/// Lays arrays out one after another in one allocation that the caller owns. Each array
/// starts on a cache line, if `begin` does. If `begin` is null, allocate() only counts,
/// and end() then returns the size to allocate.
template <class Scalar>
class array_layout {
public:
  explicit array_layout(Scalar* begin = nullptr) : begin_(begin) {
    // nop
  }

  /// Returns the next array of `values` Scalars; null if `begin` was null.
  Scalar* allocate(std::int64_t values) {
    auto* const result = begin_ == nullptr ? nullptr : begin_ + end_;
    end_ += padded(values);
    return result;
  }

  stored_matrix<Scalar> allocate(std::int64_t rows, std::int64_t columns,
                                 precision stored) {
    return stored_at<Scalar>(allocate(stored_size<Scalar>(rows * columns, stored)),
                             rows, columns, stored);
  }

  /// Number of Scalars in all arrays so far, with padding.
  std::int64_t end() const { return end_; }

private:
  Scalar* begin_;
  std::int64_t end_ = 0;
};

} // namespace troupe
