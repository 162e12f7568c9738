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
void apply_gelu(const Scalar* row, Scalar* y, std::int64_t n) {
  for (std::int64_t c = 0; c < n; ++c)
    y[c] = gelu_of(row[c]);
}

template <class Scalar>
void apply_gelu_slope(const Scalar* x, Scalar* row, std::int64_t n) {
  for (std::int64_t c = 0; c < n; ++c)
    row[c] *= gelu_slope(x[c]);
}

template <class Scalar>
void apply_relu(Scalar* row, std::uint8_t* mask, std::int64_t n) {
  for (std::int64_t c = 0; c < n; ++c) {
    mask[c] = row[c] > 0;
    row[c] = std::max(row[c], Scalar{0});
  }
}

template <class Scalar>
matrix<Scalar> behind(const matrix<Scalar>& m, std::int64_t row, std::int64_t column) {
  auto result = m;
  if (m.data != nullptr)
    result.data += row * m.stride + column;
  return result;
}

} // namespace

template <class Scalar>
epilogue<Scalar> epilogue<Scalar>::from(std::int64_t row, std::int64_t column) const {
  return {.what = what,
          .bias = bias == nullptr ? nullptr : bias + column,
          .x = behind(x, row, column),
          .y = behind(y, row, column),
          .mask = behind(mask, row, column)};
}

template <class Scalar>
void epilogue<Scalar>::finish(matrix<Scalar> part, std::int64_t row,
                              std::int64_t column) const {
  const auto n = part.columns;
  const auto* const own_bias = bias == nullptr ? nullptr : bias + column;
  for (std::int64_t r = 0; r < part.rows; ++r) {
    auto* const values = part.row(r);
    switch (what) {
    case epilogue_kind::none:
      return;
    case epilogue_kind::bias:
      add(own_bias, values, n);
      break;
    case epilogue_kind::bias_gelu:
      add(own_bias, values, n);
      apply_gelu(values, y.row(row + r) + column, n);
      break;
    case epilogue_kind::bias_relu:
      add(own_bias, values, n);
      apply_relu(values, mask.row(row + r) + column, n);
      break;
    case epilogue_kind::bias_residual:
      add_both(own_bias, x.row(row + r) + column, values, n);
      break;
    case epilogue_kind::gelu_gradient:
      apply_gelu_slope(x.row(row + r) + column, values, n);
      break;
    }
  }
}

template struct epilogue<float>;
template struct epilogue<double>;

} // namespace troupe
