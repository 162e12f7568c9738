#include "kernels/relu.hpp"

#include <algorithm>

namespace troupe {

template <class Scalar>
void relu<Scalar>::forward(matrix<Scalar> y, matrix<std::uint8_t> mask) {
  for (std::int64_t r = 0; r < y.rows; ++r) {
    auto* row = y.row(r);
    auto* passes = mask.row(r);
    for (std::int64_t c = 0; c < y.columns; ++c) {
      passes[c] = row[c] > 0;
      row[c] = std::max(row[c], Scalar{0});
    }
  }
}

template <class Scalar>
void relu<Scalar>::backward(matrix<const Scalar> dy, matrix<const std::uint8_t> mask,
                            matrix<Scalar> dx) {
  for (std::int64_t r = 0; r < dy.rows; ++r) {
    const auto* upper = dy.row(r);
    const auto* passes = mask.row(r);
    auto* row = dx.row(r);
    for (std::int64_t c = 0; c < dy.columns; ++c)
      row[c] = passes[c] != 0 ? upper[c] : Scalar{0};
  }
}

template struct relu<float>;
template struct relu<double>;

} // namespace troupe
