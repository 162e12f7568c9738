#pragma once

#include <cstdint>

namespace troupe {

/// Rectified linear units, n values.
template <class Scalar>
struct relu {
  /// y = max(y, 0) in place, mask = (y > 0).
  static void forward(Scalar* y, std::uint8_t* mask, std::int64_t n);

  /// dx = dy where the mask is set, else 0. dx may be dy.
  static void backward(const Scalar* dy, const std::uint8_t* mask, Scalar* dx,
                       std::int64_t n);
};

} // namespace troupe
