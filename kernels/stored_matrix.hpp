// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/bf16.hpp"
#include "kernels/matrix.hpp"

#include <concepts>
#include <cstddef>
#include <memory>
#include <type_traits>

namespace troupe {

/// A view of a matrix of Scalar, or of bf16 where Scalar is float: the argument type of
/// kernels that accept both types. The caller owns the values.
template <class Scalar>
struct stored_matrix {
  using value = std::remove_const_t<Scalar>;
  static constexpr bool reads = std::is_const_v<Scalar>;
  static constexpr bool may_be_bf16 = std::same_as<value, float>;
  template <class T>
  using like = std::conditional_t<reads, const T, T>;

  like<void>* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t stride = 0;
  bool transposed = false;
  bool is_bf16 = false;

  stored_matrix() = default;

  // Implicit: a call of a kernel converts a matrix.
  template <class Value>
  requires std::same_as<std::remove_const_t<Value>, value> ||(
    may_be_bf16&& std::same_as<std::remove_const_t<Value>, bf16>)
    stored_matrix(const matrix<Value>& m) requires(reads || !std::is_const_v<Value>)
    : data(m.data),
      rows(m.rows),
      columns(m.columns),
      stride(m.stride),
      transposed(m.transposed),
      is_bf16(std::same_as<std::remove_const_t<Value>, bf16>) {
    // nop
  }

  template <class Other>
  requires(reads&& std::same_as<Other, value>)
    stored_matrix(const stored_matrix<Other>& m)
    : data(m.data),
      rows(m.rows),
      columns(m.columns),
      stride(m.stride),
      transposed(m.transposed),
      is_bf16(m.is_bf16) {
    // nop
  }

  /// The matrix as a matrix of Scalar; shares the memory.
  /// \pre the matrix stores Scalars
  matrix<Scalar> plain() const {
    return {static_cast<Scalar*>(data), rows, columns, stride, transposed};
  }

  /// The matrix as a matrix of bf16; shares the memory.
  /// \pre the matrix stores bf16
  matrix<like<bf16>> rounded() const {
    return {static_cast<like<bf16>*>(data), rows, columns, stride, transposed};
  }

  /// Rows [first, first + count) of the stored matrix.
  stored_matrix row_range(std::int64_t first, std::int64_t count) const {
    auto result = *this;
    result.data = offset_data(first * stride);
    result.rows = count;
    return result;
  }

  /// Columns [first, first + count) of the stored matrix.
  stored_matrix column_range(std::int64_t first, std::int64_t count) const {
    auto result = *this;
    result.data = offset_data(first);
    result.columns = count;
    return result;
  }

  stored_matrix t() const {
    auto result = *this;
    result.transposed = !transposed;
    return result;
  }

private:
  like<void>* offset_data(std::int64_t values) const {
    if (data == nullptr)
      return nullptr;
    if (is_bf16)
      return static_cast<like<bf16>*>(data) + values;
    return static_cast<Scalar*>(data) + values;
  }
};

/// Reads rows of a stored matrix, one at a time, as Scalars. Allocates one row if the
/// matrix is bf16. The values of the matrix must outlive this object.
/// \pre not transposed
template <class Scalar>
class row_reader {
public:
  explicit row_reader(const stored_matrix<const Scalar>& from) : from_(from) {
    if (from.is_bf16)
      row_ = std::make_unique_for_overwrite<Scalar[]>(
        static_cast<std::size_t>(from.columns));
  }

  /// Row r, valid until the next call.
  const Scalar* row(std::int64_t r) {
    if constexpr (std::same_as<Scalar, float>)
      if (from_.is_bf16) {
        widen_row(from_.rounded().row(r), from_.columns, row_.get());
        return row_.get();
      }
    return from_.plain().row(r);
  }

private:
  stored_matrix<const Scalar> from_;
  std::unique_ptr<Scalar[]> row_;
};

/// Rounds `values` to bf16, and stores the rounded values in `to`.
/// \pre `to` is bf16
/// \pre `values` is as large as `to`, in other memory, and not transposed
template <class Scalar>
void round_into(const stored_matrix<Scalar>& to, const matrix<Scalar>& values) {
  if constexpr (std::same_as<Scalar, float>)
    for (std::int64_t r = 0; r < to.rows; ++r)
      round_row(values.row(r), to.columns, to.rounded().row(r));
}

/// Writes rows of a stored matrix, one at a time. Allocates one row if the matrix is
/// bf16. The memory of the matrix must outlive this object.
/// \pre not transposed
template <class Scalar>
class row_writer {
public:
  explicit row_writer(const stored_matrix<Scalar>& to) : to_(to) {
    if (to.is_bf16)
      row_ =
        std::make_unique_for_overwrite<Scalar[]>(static_cast<std::size_t>(to.columns));
  }

  /// Memory for row r, valid until the next call of row(); end(r) stores the row.
  Scalar* row(std::int64_t r) { return to_.is_bf16 ? row_.get() : to_.plain().row(r); }

  void end(std::int64_t r) {
    if constexpr (std::same_as<Scalar, float>)
      if (to_.is_bf16)
        round_row(row_.get(), to_.columns, to_.rounded().row(r));
  }

private:
  stored_matrix<Scalar> to_;
  std::unique_ptr<Scalar[]> row_;
};

} // namespace troupe
