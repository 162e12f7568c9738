// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/dispatch.hpp"

#include "kernels/cuda/dispatch.hpp"
#include "kernels/cuda/kernels.hpp"

#include <algorithm>

namespace troupe {

namespace {

/// Calls use(row, choice, position) for each choice that was not dropped, row by row.
template <class Scalar, class Use>
void for_each_sent(const gate_table<Scalar>& table, const Use& use) {
  const std::int64_t k = table.rule.chosen;
  for (std::int64_t r = 0; r < table.rows; ++r)
    for (std::int64_t c = 0; c < k; ++c)
      if (const auto position = table.positions[r * k + c]; position >= 0)
        use(r, r * k + c, position);
}

} // namespace

template <class Scalar>
void dispatch<Scalar>::send(const gate_table<Scalar>& table, matrix<const Scalar> x,
                            Scalar* rows, stream& stream) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = stream.gpu())
      return cuda::dispatch::send(table, x, rows, gpu->handle());
  for_each_sent(table, [&](std::int64_t r, std::int64_t, std::int64_t position) {
    std::copy_n(x.row(r), x.columns, rows + position * x.columns);
  });
}

template <class Scalar>
void dispatch<Scalar>::combine(const gate_table<Scalar>& table, const Scalar* rows,
                               matrix<Scalar> y, stream& stream) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = stream.gpu())
      return cuda::dispatch::combine(table, rows, y, gpu->handle());
  for_each_sent(table, [&](std::int64_t r, std::int64_t choice, std::int64_t position) {
    const auto* const in = rows + position * y.columns;
    const Scalar weight = table.weights[choice];
    auto* const out = y.row(r);
    for (std::int64_t c = 0; c < y.columns; ++c)
      out[c] += weight * in[c];
  });
}

template <class Scalar>
void dispatch<Scalar>::combine_gradient(const gate_table<Scalar>& table,
                                        const Scalar* rows, matrix<const Scalar> dy,
                                        Scalar* drows, Scalar* dweights,
                                        stream& stream) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = stream.gpu())
      return cuda::dispatch::combine_gradient(table, rows, dy, drows, dweights,
                                              gpu->handle());
  std::fill_n(dweights, table.rows * table.rule.chosen, Scalar{0});
  for_each_sent(table, [&](std::int64_t r, std::int64_t choice, std::int64_t position) {
    const auto *const upper = dy.row(r), *const output = rows + position * dy.columns;
    const Scalar weight = table.weights[choice];
    auto* const down = drows + position * dy.columns;
    Scalar sum = 0;
    for (std::int64_t c = 0; c < dy.columns; ++c) {
      sum += upper[c] * output[c];
      down[c] = weight * upper[c];
    }
    dweights[choice] = sum;
  });
}

template <class Scalar>
void dispatch<Scalar>::send_gradient(const gate_table<Scalar>& table,
                                     const Scalar* drows, matrix<Scalar> dx,
                                     stream& stream) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = stream.gpu())
      return cuda::dispatch::send_gradient(table, drows, dx, gpu->handle());
  for_each_sent(table, [&](std::int64_t r, std::int64_t, std::int64_t position) {
    const auto* const in = drows + position * dx.columns;
    auto* const out = dx.row(r);
    for (std::int64_t c = 0; c < dx.columns; ++c)
      out[c] += in[c];
  });
}

template struct dispatch<float>;
template struct dispatch<double>;

} // namespace troupe
