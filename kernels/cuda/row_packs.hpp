// SPDX-License-Identifier: BSD-3-Clause
// Rows of a matrix, distributed over the lanes of a warp, inside a .cu.
#pragma once

#include "kernels/cuda/stored.hpp"
#include "kernels/cuda/warp.hpp"

#include <cstdint>

namespace troupe::cuda {

/// A row of which each lane has every 32nd pack. The constructor loads the first packs
/// into registers. Further packs of a longer row are read at each use.
template <int N>
class row_packs {
public:
  /// Number of packs that a lane holds in registers: enough for a row of up to 1,024
  /// values, in packs of 8.
  static constexpr int held = 4;

  __device__ row_packs(const stored& source, std::int64_t row, int columns)
    : source_(source), row_(row) {
    TROUPE_UNROLL
    for (int i = 0; i < held; ++i)
      if (column_of(i) < columns)
        bits_[i] = source.load_bits<N>(row, column_of(i));
  }

  /// First column of this lane's i-th pack.
  __device__ static int column_of(int i) {
    return (i * warp_size + static_cast<int>(threadIdx.x) % warp_size) * N;
  }

  // Two types of packs, because registers can only be indexed by constants.

  struct held_pack {
    int i;
  };
  struct far_pack {
    int column;
  };

  __device__ void get(held_pack which, float (&to)[N]) const {
    source_.numbers(bits_[which.i], to);
  }
  __device__ void get(far_pack which, float (&to)[N]) const {
    source_.load(row_, which.column, to);
  }

private:
  stored source_;
  std::int64_t row_;
  stored_bits<N> bits_[held];
};

/// Calls f(pack, column) for each of a lane's packs.
template <int N, class F>
__device__ void for_packs_of_row(int columns, const F& f) {
  using row = row_packs<N>;
  TROUPE_UNROLL
  for (int i = 0; i < row::held; ++i)
    if (row::column_of(i) < columns)
      f(typename row::held_pack{i}, row::column_of(i));
  for (int c = row::column_of(row::held); c < columns; c += warp_size * N)
    f(typename row::far_pack{c}, c);
}

} // namespace troupe::cuda
