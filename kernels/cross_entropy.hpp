// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/matrix.hpp"
#include "kernels/stream.hpp"

#include <cstdint>

namespace troupe {

/// The result of the last layer for one microbatch.
struct loss_sum {
  double loss = 0; ///< Negative log-likelihoods in nats, summed over rows.
  /// Rows whose largest logit is the label's; of equal logits the first counts.
  std::int64_t correct = 0;
};

/// Softmax with cross-entropy, fused with the gradient.
template <class Scalar>
struct cross_entropy {
  /// Turns logits (R, V) into scale * d loss / d logits, in place.
  /// \param labels (R), each in [0, V)
  /// \param row_losses (R), filled, so that the sum is in double: on the CPU in row
  /// order
  /// \param sum filled when the kernel has ended
  static void forward(matrix<Scalar> logits, const std::int32_t* labels, Scalar scale,
                      Scalar* row_losses, loss_sum& sum, stream& stream);

  // The same over tensor shards. Each shard has the logits of some classes, from class
  // `first` on. Shards gather three facts a row from each other instead of logits
  // (Shoeybi et al., "Megatron-LM", 2019, section 3).

  /// Number of values that each shard shares with the others for R rows.
  static std::int64_t facts(std::int64_t rows) { return 3 * rows; }

  /// Turns logits into exponentials.
  /// \param local_facts three facts of each row of this shard. First the largest logit
  /// (R), then the sum of exponentials relative to that logit (R), then the label's
  /// logit or 0 (R). The sum is negative where the label has the first of the largest
  /// logits.
  static void prepare(matrix<Scalar> logits, std::int64_t first,
                      const std::int32_t* labels, Scalar* local_facts, stream& stream);

  /// Computes the result of forward() from the facts.
  /// \param all_facts the facts of all shards, in order
  /// \param local_shard the index of this shard
  static void finish(matrix<Scalar> exponentials, std::int64_t first,
                     const std::int32_t* labels, const Scalar* all_facts, int shards,
                     int local_shard, Scalar scale, Scalar* row_losses, loss_sum& sum,
                     stream& stream);
};

} // namespace troupe
