// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/relu_pool.hpp"

#include "kernels/cuda/dispatch.hpp"
#include "kernels/cuda/kernels.hpp"

#include <algorithm>

namespace troupe {

template <class Scalar>
void relu_pool<Scalar>::forward(const shape& dims, const Scalar* x,
                                stored_matrix<Scalar> y, std::uint8_t* choice,
                                stream& stream) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = stream.gpu())
      return cuda::relu_pool::forward(dims, x, y, choice, gpu->handle());
  const auto rows = dims.planes * (dims.height / 2), columns = dims.width / 2;
  stream.cpu().run_ranges(rows, 64, [&](std::int64_t first, std::int64_t last, int) {
    row_writer<Scalar> to{y};
    for (auto r = first; r < last; ++r) {
      auto* const out = to.row(r);
      const auto* top = x + 2 * r * dims.width;
      const auto* bottom = top + dims.width;
      for (std::int64_t c = 0; c < columns; ++c) {
        const Scalar square[] = {top[2 * c], top[2 * c + 1], bottom[2 * c],
                                 bottom[2 * c + 1]};
        Scalar most = 0;
        std::uint8_t chosen = 4;
        for (std::uint8_t i = 0; i < 4; ++i)
          if (square[i] > most) {
            most = square[i];
            chosen = i;
          }
        out[c] = most;
        choice[r * columns + c] = chosen;
      }
      to.end(r);
    }
  });
}

template <class Scalar>
void relu_pool<Scalar>::backward(const shape& dims, stored_matrix<const Scalar> dy,
                                 const std::uint8_t* choice, Scalar* dx,
                                 stream& stream) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = stream.gpu())
      return cuda::relu_pool::backward(dims, dy, choice, dx, gpu->handle());
  const auto rows = dims.planes * (dims.height / 2), columns = dims.width / 2;
  stream.cpu().run_ranges(rows, 64, [&](std::int64_t first, std::int64_t last, int) {
    row_reader<Scalar> from_above{dy};
    for (auto r = first; r < last; ++r) {
      const auto* const from = from_above.row(r);
      auto* top = dx + 2 * r * dims.width;
      auto* bottom = top + dims.width;
      for (std::int64_t c = 0; c < columns; ++c) {
        const auto chosen = choice[r * columns + c];
        const Scalar upper = from[c];
        top[2 * c] = chosen == 0 ? upper : 0;
        top[2 * c + 1] = chosen == 1 ? upper : 0;
        bottom[2 * c] = chosen == 2 ? upper : 0;
        bottom[2 * c + 1] = chosen == 3 ? upper : 0;
      }
    }
  });
}

template struct relu_pool<float>;
template struct relu_pool<double>;

} // namespace troupe
