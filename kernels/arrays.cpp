// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/arrays.hpp"

#include "kernels/cuda/dispatch.hpp"
#include "kernels/cuda/kernels.hpp"

#include <algorithm>
#include <numeric>

namespace troupe {

namespace {

constexpr std::int64_t values_a_slice = 1 << 16;

/// Calls work(first, count) for ranges of n values, on the threads of the stream.
template <class Work>
void by_ranges(std::int64_t n, stream& stream, const Work& work) {
  stream.cpu().run_ranges(
    n, values_a_slice,
    [&](std::int64_t first, std::int64_t last, int) { work(first, last - first); });
}

} // namespace

template <class Scalar>
void arrays<Scalar>::copy(const Scalar* from, std::int64_t n, Scalar* to) {
  std::copy_n(from, n, to);
}

template <class Scalar>
void arrays<Scalar>::add(const Scalar* from, std::int64_t n, Scalar* to) {
  for (std::int64_t i = 0; i < n; ++i)
    to[i] += from[i];
}

template <class Scalar>
Scalar arrays<Scalar>::sum_in_order(const Scalar* from, std::int64_t n) {
  return std::accumulate(from, from + n, Scalar{0});
}

template <class Scalar>
void arrays<Scalar>::copy(const Scalar* from, std::int64_t n, Scalar* to,
                          stream& stream) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = stream.gpu())
      return cuda::arrays::copy(dense(from, 1, n), dense(to, 1, n), gpu->handle());
  by_ranges(n, stream, [&](auto i, auto count) { copy(from + i, count, to + i); });
}

template <class Scalar>
void arrays<Scalar>::copy(stored_matrix<const Scalar> from, stored_matrix<Scalar> to,
                          stream& stream) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = stream.gpu())
      return cuda::arrays::copy(from, to, gpu->handle());
  const auto rows = [&](std::int64_t first, std::int64_t last, int) {
    row_reader<Scalar> reader{from};
    row_writer<Scalar> writer{to};
    for (auto r = first; r < last; ++r) {
      copy(reader.row(r), from.columns, writer.row(r));
      writer.end(r);
    }
  };
  stream.cpu().run_ranges(
    from.rows, values_a_slice / std::max<std::int64_t>(from.columns, 1), rows);
}

template <class Scalar>
void arrays<Scalar>::add(const Scalar* from, std::int64_t n, Scalar* to,
                         stream& stream) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = stream.gpu())
      return cuda::arrays::add(from, n, to, gpu->handle());
  by_ranges(n, stream, [&](auto i, auto count) { add(from + i, count, to + i); });
}

template <class Scalar>
void arrays<Scalar>::clear(std::int64_t n, Scalar* to, stream& stream) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = stream.gpu())
      return cuda::arrays::clear(n, to, gpu->handle());
  by_ranges(n, stream,
            [&](auto i, auto count) { std::fill_n(to + i, count, Scalar{0}); });
}

template struct arrays<float>;
template struct arrays<double>;

} // namespace troupe
