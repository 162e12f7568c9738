// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/precision.hpp"
#include "kernels/stored_matrix.hpp"
#include "kernels/stream.hpp"

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace troupe {

/// The result of the last layer for one microbatch.
struct loss_sum {
  double loss = 0; ///< Negative log-likelihoods in nats, summed over rows.
  /// Number of rows whose largest logit is the label's; of equal logits the first
  /// counts.
  std::int64_t correct = 0;
};

/// The gradient of logits (R, V), in the memory of the logits. In fp32 the gradient is
/// the matrix itself. In bf16 each row begins where the row of logits begins. For
/// double, `stored` has no effect.
template <class Scalar>
stored_matrix<Scalar> gradient_of_logits(const matrix<Scalar>& logits,
                                         precision stored) {
  if constexpr (std::same_as<std::remove_const_t<Scalar>, float>)
    if (stored == precision::bf16) {
      using value = std::conditional_t<std::is_const_v<Scalar>, const bf16, bf16>;
      return matrix<value>{reinterpret_cast<value*>(logits.data), logits.rows,
                           logits.columns, 2 * logits.stride, false};
    }
  return logits;
}

/// Softmax with cross-entropy, fused with the gradient. A gradient is computed in the
/// type of the logits, and rounded once if it is stored as bf16.
template <class Scalar>
struct cross_entropy {
  /// Turns logits (R, V) into scale * d loss / d logits.
  /// \param labels (R), each in [0, V)
  /// \param gradient gradient_of_logits() of these logits
  /// \param row_losses (R), filled with the loss of each row in nats; then summed in
  /// double, on the CPU in row order
  /// \param sum on the CPU filled before the return. On a GPU, a thread of the stream
  /// fills `sum` when the kernel has ended, unless the kernel fails; `sum` must outlive
  /// that call
  static void forward(matrix<Scalar> logits, const std::int32_t* labels, Scalar scale,
                      stored_matrix<Scalar> gradient, Scalar* row_losses, loss_sum& sum,
                      stream& stream);

  // Cross-entropy over tensor shards: prepare(), a gather of facts, finish(). Each
  // shard has the logits of some classes, from class `first` on. Shards gather three
  // facts a row from each other instead of logits (Shoeybi et al., "Megatron-LM", 2019,
  // section 3).

  /// Number of values that each shard sends to all other shards for R rows.
  static std::int64_t facts(std::int64_t rows) { return 3 * rows; }

  /// Reads the logits of this shard, and fills the facts that other shards need.
  /// \param labels (R), each in [0, V), where V counts the classes of all shards
  /// \param local_facts three facts of each row of this shard. First the largest logit
  /// (R), then the sum of exponentials relative to that logit (R), then the label's
  /// logit or 0 (R). The sum is negative where the label has the first of this shard's
  /// largest logits.
  static void prepare(matrix<const Scalar> logits, std::int64_t first,
                      const std::int32_t* labels, Scalar* local_facts, stream& stream);

  /// Turns logits into the gradients of forward(), and fills row_losses and `sum` as
  /// forward() does.
  /// \param all_facts the facts of all shards, in the order of shards
  /// \param local_shard the index of this shard
  static void finish(matrix<Scalar> logits, std::int64_t first,
                     const std::int32_t* labels, const Scalar* all_facts, int shards,
                     int local_shard, Scalar scale, stored_matrix<Scalar> gradient,
                     Scalar* row_losses, loss_sum& sum, stream& stream);
};

} // namespace troupe
