// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/matrix.hpp"
#include "kernels/stream.hpp"

#include <cstdint>

namespace troupe {

/// What the last layer says about a microbatch.
struct loss_sum {
  double loss = 0; ///< Negative log-likelihoods in nats, summed over rows.
  /// Rows whose largest logit is the label's; of equal ones the first counts.
  std::int64_t correct = 0;
};

/// Softmax with cross-entropy, fused with its gradient.
template <class Scalar>
struct cross_entropy {
  /// Turns logits (R, V) into scale * d loss / d logits, in place. \param labels (R),
  /// each in [0, V) \param row_losses (R), filled, so that the sum is in double: on the
  /// CPU in row order \param sum there when the kernel has ended
  static void forward(matrix<Scalar> logits, const std::int32_t* labels, Scalar scale,
                      Scalar* row_losses, loss_sum& sum, stream& on);

  // The same over tensor shards, each with the logits of some classes, from `first` on:
  // what one must know of the others' is gathered, and the logits are not (Shoeybi et
  // al., "Megatron-LM", 2019, section 3).

  /// Values that each shard tells of R rows.
  static std::int64_t facts(std::int64_t rows) { return 3 * rows; }

  /// Turns logits into exponentials. \param own its facts: the largest logit (R), the
  /// sum of exponentials below it (R), negative where the label has the first of the
  /// largest logits, and the label's logit or 0 (R)
  static void tell(matrix<Scalar> logits, std::int64_t first,
                   const std::int32_t* labels, Scalar* own, stream& on);

  /// What forward() does, from those. \param all the facts of all shards, in order
  /// \param own the shard's index
  static void finish(matrix<Scalar> exponentials, std::int64_t first,
                     const std::int32_t* labels, const Scalar* all, int shards, int own,
                     Scalar scale, Scalar* row_losses, loss_sum& sum, stream& on);
};

} // namespace troupe
