// SPDX-License-Identifier: BSD-3-Clause
// Launches of elementwise kernels, in which no output value depends on another one. For
// .cu files only.
#pragma once

#include "kernels/cuda/stored.hpp"

#include <cstdint>

namespace troupe::cuda {

inline constexpr unsigned threads_of_elementwise = 256;

template <int N, class Body>
__global__ void __launch_bounds__(threads_of_elementwise)
  over_packs(std::int64_t rows, std::int64_t columns, Body body) {
  const auto packs = columns / N;
  const auto i = std::int64_t{blockIdx.x} * threads_of_elementwise + threadIdx.x;
  if (i < rows * packs)
    body.template run<N>(i / packs, i % packs * N);
}

template <int N, class Body>
void launch_over(cudaStream_t stream, std::int64_t rows, std::int64_t columns,
                 const Body& body) {
  if (rows * columns > 0)
    launch(stream, {blocks_of(rows * (columns / N), threads_of_elementwise), 1, 1},
           {threads_of_elementwise, 1, 1}, 0, over_packs<N, Body>, rows, columns, body);
}

/// Calls body.run<1>(row, column) for each value of (R, C), one thread per value.
template <class Body>
void for_each_value(cudaStream_t stream, std::int64_t rows, std::int64_t columns,
                    const Body& body) {
  launch_over<1>(stream, rows, columns, body);
}

/// Calls body.run<N>(row, column) for each N neighbouring values of (R, C), one thread
/// per call.
/// \param arrays N is `pack` if `columns` is a multiple of `pack` and all arrays are
/// wide; else N is 1
template <class Body, class... Arrays>
void for_each_pack(cudaStream_t stream, std::int64_t rows, std::int64_t columns,
                   const Body& body, const Arrays&... arrays) {
  by_pack([&](auto n) { launch_over<n>(stream, rows, columns, body); },
          is_packs{columns}, arrays...);
}

} // namespace troupe::cuda
