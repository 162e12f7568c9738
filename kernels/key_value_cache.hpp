// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/matrix.hpp"
#include "kernels/stream.hpp"

#include <cstdint>

namespace troupe {

/// R new tokens of one sequence, which follow `past` earlier tokens. H heads, C = H *
/// (width of a head).
struct next_tokens {
  std::int64_t positions; ///< T, the largest number of tokens of a sequence
  std::int64_t heads;     ///< H
  std::int64_t width;     ///< C
  std::int64_t past;      ///< tokens before the new ones; past + R <= T
};

/// The keys and values of a sequence, kept so that later tokens attend to earlier
/// tokens without a second computation. The array holds (H, T, C/H) keys, (H, T, C/H)
/// values, and scratch memory for (H, T) scores. CPU only.
template <class Scalar>
struct key_value_cache {
  /// Number of values in the cache of one sequence.
  static std::int64_t values(std::int64_t positions, std::int64_t heads,
                             std::int64_t width);

  /// Stores the keys and values of the new tokens in the cache. qkv: (R, 3, H, C/H), as
  /// in attention.hpp.
  static void put(const next_tokens& dims, matrix<const Scalar> qkv, Scalar* cache,
                  stream& stream);

  /// Causal self-attention (attention.hpp) of the new tokens: each attends to itself
  /// and to all earlier tokens. y: (R, H, C/H).
  /// \pre put() has stored the new tokens and all earlier tokens
  static void attend(const next_tokens& dims, matrix<const Scalar> qkv, Scalar* cache,
                     matrix<Scalar> y, stream& stream);
};

} // namespace troupe
