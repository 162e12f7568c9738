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
void gelu<Scalar>::forward(const Scalar* x, Scalar* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    y[i] = x[i] * gate(x[i]);
}

template <class Scalar>
void gelu<Scalar>::backward(const Scalar* x, const Scalar* dy, Scalar* dx,
                            std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const Scalar g = gate(x[i]);
    const Scalar slope_of_twice_u =
      Scalar(twice_sqrt_2_over_pi) * (1 + Scalar(3 * 0.044715) * x[i] * x[i]);
    dx[i] = dy[i] * (g + x[i] * g * (1 - g) * slope_of_twice_u);
  }
}

template struct gelu<float>;
template struct gelu<double>;

} // namespace troupe
