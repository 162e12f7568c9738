// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/memory.hpp"
#include "kernels/stored_matrix.hpp"

namespace troupe {

/// Values (Scalar) of memory that so many stored ones take.
template <class Scalar>
constexpr std::int64_t room_of(std::int64_t values, precision stored) {
  if (stored == precision::fp32)
    return values;
  constexpr std::int64_t in_one = sizeof(Scalar) / sizeof(bf16);
  return (values + in_one - 1) / in_one;
}

/// An array of stored values as a matrix without gaps.
template <class Scalar, class Memory>
stored_matrix<Scalar> stored_at(Memory* where, std::int64_t rows, std::int64_t columns,
                                precision stored) {
  stored_matrix<Scalar> result;
  result.data = where;
  result.rows = rows;
  result.columns = columns;
  result.stride = columns;
  result.is_bf16 = stored == precision::bf16;
  return result;
}

/// Puts arrays one behind another, each on cache lines of its own. Without memory it
/// only counts.
template <class Scalar>
class array_shelf {
public:
  explicit array_shelf(Scalar* begin = nullptr) : begin_(begin) {
    // nop
  }

  /// Null where there is no memory.
  Scalar* take(std::int64_t values) {
    auto* const result = begin_ == nullptr ? nullptr : begin_ + end_;
    end_ += padded(values);
    return result;
  }

  stored_matrix<Scalar> take(std::int64_t rows, std::int64_t columns,
                             precision stored) {
    return stored_at<Scalar>(take(room_of<Scalar>(rows * columns, stored)), rows,
                             columns, stored);
  }

  /// Values of all that was taken.
  std::int64_t end() const { return end_; }

private:
  Scalar* begin_;
  std::int64_t end_ = 0;
};

} // namespace troupe
