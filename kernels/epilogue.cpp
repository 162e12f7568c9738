// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/epilogue.hpp"

#include "kernels/vector_math.hpp"

#include <algorithm>

namespace troupe {

namespace {

template <class Scalar>
void add(const Scalar* from, Scalar* row, std::int64_t n) {
  for (std::int64_t c = 0; c < n; ++c)
    row[c] += from[c];
}

template <class Scalar>
void add_both(const Scalar* bias, const Scalar* x, Scalar* row, std::int64_t n) {
  for (std::int64_t c = 0; c < n; ++c)
    row[c] = row[c] + bias[c] + x[c];
}

template <class Scalar>
void apply_gelu(Scalar* row, Scalar* y, std::int64_t n) {
  for (std::int64_t c = 0; c < n; ++c) {
    const auto result = gelu_and_slope(row[c]);
    y[c] = result.value;
    row[c] = result.slope;
  }
}

template <class Scalar>
void multiply_by(const Scalar* x, Scalar* row, std::int64_t n) {
  for (std::int64_t c = 0; c < n; ++c)
    row[c] *= x[c];
}

template <class Scalar>
void apply_relu(Scalar* row, std::uint8_t* mask, std::int64_t n) {
  for (std::int64_t c = 0; c < n; ++c) {
    mask[c] = row[c] > 0;
    row[c] = std::max(row[c], Scalar{0});
  }
}

/// The part of a matrix that begins at (row, column).
template <class Matrix>
Matrix tail(const Matrix& m, std::int64_t row, std::int64_t column) {
  return m.data == nullptr
           ? m
           : m.row_range(row, m.rows - row).column_range(column, m.columns - column);
}

} // namespace

template <class Scalar>
epilogue<Scalar> epilogue<Scalar>::from(std::int64_t row, std::int64_t column) const {
  return {.kind = kind,
          .bias = bias == nullptr ? nullptr : bias + column,
          .x = tail(x, row, column),
          .y = tail(y, row, column),
          .mask = tail(mask, row, column)};
}

template <class Scalar>
void epilogue<Scalar>::finish(matrix<Scalar> part, std::int64_t row,
                              std::int64_t column) const {
  if (kind == epilogue_kind::none)
    return;
  const auto n = part.columns;
  const auto* const part_bias = bias == nullptr ? nullptr : bias + column;
  const auto within = [&](const auto& m) {
    return m.data == nullptr ? m : m.row_range(row, part.rows).column_range(column, n);
  };
  row_reader<Scalar> from{within(x)};
  row_writer<Scalar> to{within(y)};
  for (std::int64_t r = 0; r < part.rows; ++r) {
    auto* const values = part.row(r);
    switch (kind) {
    case epilogue_kind::none:
      break;
    case epilogue_kind::bias:
      add(part_bias, values, n);
      break;
    case epilogue_kind::bias_gelu:
      add(part_bias, values, n);
      apply_gelu(values, to.row(r), n);
      to.end(r);
      break;
    case epilogue_kind::bias_relu:
      add(part_bias, values, n);
      apply_relu(values, mask.row(row + r) + column, n);
      break;
    case epilogue_kind::bias_residual:
      add_both(part_bias, from.row(r), values, n);
      break;
    case epilogue_kind::gelu_gradient:
      multiply_by(from.row(r), values, n);
      break;
    }
  }
}

template struct epilogue<float>;
template struct epilogue<double>;

} // namespace troupe
