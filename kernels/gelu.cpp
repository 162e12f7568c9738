#include "kernels/gelu.hpp"

#include "kernels/vector_math.hpp"

namespace troupe {

namespace {

constexpr double twice_sqrt_2_over_pi = 1.5957691216057308;

/// (1 + tanh(u)) / 2 = 1 / (1 + e^(-2u)) where u = sqrt(2/pi) (x + 0.044715 x^3).
template <class Scalar>
Scalar gate(Scalar x) {
  const Scalar twice_u =
    Scalar(twice_sqrt_2_over_pi) * (x + Scalar(0.044715) * x * x * x);
  return 1 / (1 + fast_exp(-twice_u));
}

} // namespace

template <class Scalar>
void gelu<Scalar>::forward(matrix<const Scalar> x, matrix<Scalar> y) {
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const auto* in = x.row(r);
    auto* out = y.row(r);
    for (std::int64_t c = 0; c < x.columns; ++c)
      out[c] = in[c] * gate(in[c]);
  }
}

template <class Scalar>
void gelu<Scalar>::backward(matrix<const Scalar> x, matrix<const Scalar> dy,
                            matrix<Scalar> dx) {
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const auto* in = x.row(r);
    const auto* upper = dy.row(r);
    auto* out = dx.row(r);
    for (std::int64_t c = 0; c < x.columns; ++c) {
      const Scalar g = gate(in[c]);
      const Scalar slope_of_twice_u =
        Scalar(twice_sqrt_2_over_pi) * (1 + Scalar(3 * 0.044715) * in[c] * in[c]);
      out[c] = upper[c] * (g + in[c] * g * (1 - g) * slope_of_twice_u);
    }
  }
}

template struct gelu<float>;
template struct gelu<double>;

} // namespace troupe
