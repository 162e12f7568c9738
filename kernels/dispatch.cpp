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
      if (const auto place = table.places[r * k + c]; place >= 0)
        use(r, r * k + c, place);
}

} // namespace

template <class Scalar>
void dispatch<Scalar>::send(const gate_table<Scalar>& by, matrix<const Scalar> x,
                            Scalar* rows, stream& on) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = on.gpu())
      return cuda::dispatch::send(by, x, rows, gpu->on());
  for_each_sent(by, [&](std::int64_t r, std::int64_t, std::int64_t place) {
    std::copy_n(x.row(r), x.columns, rows + place * x.columns);
  });
}

template <class Scalar>
void dispatch<Scalar>::combine(const gate_table<Scalar>& by, const Scalar* rows,
                               matrix<Scalar> y, stream& on) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = on.gpu())
      return cuda::dispatch::combine(by, rows, y, gpu->on());
  for_each_sent(by, [&](std::int64_t r, std::int64_t choice, std::int64_t place) {
    const auto* const in = rows + place * y.columns;
    const Scalar weight = by.weights[choice];
    auto* const out = y.row(r);
    for (std::int64_t c = 0; c < y.columns; ++c)
      out[c] += weight * in[c];
  });
}

template <class Scalar>
void dispatch<Scalar>::combine_gradient(const gate_table<Scalar>& by,
                                        const Scalar* rows, matrix<const Scalar> dy,
                                        Scalar* drows, Scalar* dweights, stream& on) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = on.gpu())
      return cuda::dispatch::combine_gradient(by, rows, dy, drows, dweights, gpu->on());
  std::fill_n(dweights, by.rows * by.rule.chosen, Scalar{0});
  for_each_sent(by, [&](std::int64_t r, std::int64_t choice, std::int64_t place) {
    const auto *const upper = dy.row(r), *const output = rows + place * dy.columns;
    const Scalar weight = by.weights[choice];
    auto* const down = drows + place * dy.columns;
    Scalar sum = 0;
    for (std::int64_t c = 0; c < dy.columns; ++c) {
      sum += upper[c] * output[c];
      down[c] = weight * upper[c];
    }
    dweights[choice] = sum;
  });
}

template <class Scalar>
void dispatch<Scalar>::send_gradient(const gate_table<Scalar>& by, const Scalar* drows,
                                     matrix<Scalar> dx, stream& on) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = on.gpu())
      return cuda::dispatch::send_gradient(by, drows, dx, gpu->on());
  for_each_sent(by, [&](std::int64_t r, std::int64_t, std::int64_t place) {
    const auto* const in = drows + place * dx.columns;
    auto* const out = dx.row(r);
    for (std::int64_t c = 0; c < dx.columns; ++c)
      out[c] += in[c];
  });
}

template struct dispatch<float>;
template struct dispatch<double>;

} // namespace troupe
