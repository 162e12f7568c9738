#include "kernels/relu.hpp"

#include <algorithm>

namespace troupe {

template <class Scalar>
void relu<Scalar>::forward(Scalar* y, std::uint8_t* mask, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    mask[i] = y[i] > 0;
    y[i] = std::max(y[i], Scalar{0});
  }
}

template <class Scalar>
void relu<Scalar>::backward(const Scalar* dy, const std::uint8_t* mask, Scalar* dx,
                            std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    dx[i] = mask[i] != 0 ? dy[i] : Scalar{0};
}

template struct relu<float>;
template struct relu<double>;

} // namespace troupe
