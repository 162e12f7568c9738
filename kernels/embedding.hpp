// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/stored_matrix.hpp"
#include "kernels/stream.hpp"

#include <cstdint>

namespace troupe {

/// Sizes of one embedding, or of a tensor shard of an embedding: B sequences of T
/// tokens (`length`), width C, V words.
struct embedding_shape {
  std::int64_t sequences, length, width, words;
  std::int64_t first_word = 0;
  bool by_position = false; ///< Tokens and y have T before B.

  /// Position of a row's token in its sequence, 0 to T - 1.
  std::int64_t position_of(std::int64_t row) const {
    return by_position ? row / sequences : row % length;
  }
};

/// Token and learned position embeddings: y[b, t] = words[tokens[b, t]] + positions[t].
/// B sequences of T tokens, width C, V words. tokens: (B, T), each in [0, V); words:
/// (V, C); positions: (T, C); y: (B, T, C).
///
/// A tensor shard stores V of the words, from first_word on; all other words count as
/// zeros. Tokens are then words of any shard. Position embeddings count as zeros where
/// `positions` is null. The sum over all shards is then the whole y.
template <class Scalar>
struct embedding {
  using shape = embedding_shape;

  static void forward(const shape& dims, const std::int32_t* tokens,
                      stored_matrix<const Scalar> words,
                      stored_matrix<const Scalar> positions, stored_matrix<Scalar> y,
                      stream& stream);

  /// dwords = beta dwords + the sum of dy over the rows of each word, and dpositions =
  /// beta dpositions + the sum of dy over the rows of each position. Rows are added in
  /// order; beta is 0 or 1.
  /// \param dpositions (T, C), not null, also on a shard whose forward has no
  /// `positions`
  static void gradient(const shape& dims, const std::int32_t* tokens,
                       stored_matrix<const Scalar> dy, Scalar beta, Scalar* dwords,
                       Scalar* dpositions, stream& stream);
};

} // namespace troupe
