#pragma once

#include "kernels/matrix.hpp"
#include "kernels/team.hpp"

#include <cstdint>

namespace troupe {

/// What the last layer says about a microbatch.
struct loss_sum {
  double loss = 0;          ///< Negative log-likelihoods in nats, summed over rows.
  std::int64_t correct = 0; ///< Rows whose largest logit is the label's.
};

/// Softmax with cross-entropy, fused with its gradient.
template <class Scalar>
struct cross_entropy {
  /// Turns logits (R, V) into scale * d loss / d logits, in place, and returns the
  /// loss. \param labels (R), each in [0, V) \param row_losses (R), filled, so that the
  /// sum is in row order
  static loss_sum forward(matrix<Scalar> logits, const std::int32_t* labels,
                          Scalar scale, Scalar* row_losses, team& threads);
};

} // namespace troupe
