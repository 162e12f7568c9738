// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/matrix.hpp"
#include "kernels/stream.hpp"

#include <cstdint>

namespace troupe {

/// Tokens of one sequence that come behind others, R at a time. H heads, C = H * (width
/// of a head).
struct next_tokens {
  std::int64_t positions; ///< T, the most that a sequence has
  std::int64_t heads;     ///< H
  std::int64_t width;     ///< C
  std::int64_t past;      ///< tokens before these; past + R <= T
};

/// The keys and values of a sequence, kept so that later tokens attend to them without
/// computing them again: (H, T, C/H) keys, as many values, and (H, T) scores while an
/// attention runs. On the CPU alone.
template <class Scalar>
struct key_value_cache {
  /// Values that the cache of a sequence takes.
  static std::int64_t values(std::int64_t positions, std::int64_t heads,
                             std::int64_t width);

  /// Puts keys and values of tokens past.. where they belong. qkv: (R, 3, H, C/H), as
  /// attention takes it.
  static void put(const next_tokens& dims, matrix<const Scalar> qkv, Scalar* cache,
                  stream& on);

  /// Causal self-attention (attention.hpp) of these tokens: each attends to all before
  /// it and itself. y: (R, H, C/H). \pre put() has put them
  static void attend(const next_tokens& dims, matrix<const Scalar> qkv, Scalar* cache,
                     matrix<Scalar> y, stream& on);
};

} // namespace troupe
