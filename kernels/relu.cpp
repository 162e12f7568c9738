// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/relu.hpp"

#include "kernels/cuda/dispatch.hpp"
#include "kernels/cuda/kernels.hpp"

#include <algorithm>

namespace troupe {

template <class Scalar>
void relu<Scalar>::backward(stored_matrix<const Scalar> dy,
                            matrix<const std::uint8_t> mask, stored_matrix<Scalar> dx,
                            stream& stream) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = stream.gpu())
      return cuda::relu::backward(dy, mask, dx, gpu->handle());
  constexpr std::int64_t values_a_slice = 1 << 16;
  const auto rows = [&](std::int64_t first, std::int64_t last, int) {
    row_reader<Scalar> from_above{dy};
    row_writer<Scalar> to{dx};
    for (auto r = first; r < last; ++r) {
      const auto* upper = from_above.row(r);
      const auto* passes = mask.row(r);
      auto* row = to.row(r);
      for (std::int64_t c = 0; c < dy.columns; ++c)
        row[c] = passes[c] != 0 ? upper[c] : Scalar{0};
      to.end(r);
    }
  };
  stream.cpu().run_ranges(dy.rows,
                          values_a_slice / std::max<std::int64_t>(dy.columns, 1), rows);
}

template struct relu<float>;
template struct relu<double>;

} // namespace troupe
