#pragma once

#include "models/layers/gpt.hpp"

#include <cstdint>

namespace troupe {

// Mixture of experts: several feed-forward networks in the place of one, of which a
// gate chooses some for each token (Shazeer et al., "Outrageously Large Neural
// Networks", 2017). Parameters are called as in gpt.hpp: `mlp.router.weight` [C, n],
// and c_fc and c_proj of `mlp.experts.E.` and of `mlp.shared.`. Each c_proj begins as
// that of the feed-forward network whose place its expert takes.

/// How many experts a layer has, and how its gate chooses.
struct expert_options {
  int count = 8;          ///< n
  int chosen = 1;         ///< k, experts a token; 1 is Switch's, 2 GShard's.
  double capacity = 1.25; ///< Of an expert, over its even share of a microbatch.
  double balance = 0.01;  ///< Weight of the load-balancing loss.
  double noise = 0;       ///< Standard deviation, added to the gate's logits.
  bool shared = false;    ///< One more expert, which all tokens have.
  std::uint64_t seed = 1; ///< Of the noise.

  /// Rows that an expert takes of `rows` of a microbatch, rounded up. In an evaluation
  /// it takes all, so that what is evaluated does not depend on the batch.
  std::int64_t capacity_of(std::int64_t rows) const;
};

/// Whether a layer computes its experts itself, or others do.
enum class experts_at : std::uint8_t { home, elsewhere };

/// The second half of block `number`: y = x + the weighted outputs of the chosen
/// experts for ln_2(x); what finds its experts full gets nothing but x. Where experts
/// are elsewhere, the layer has none of their parameters, and its forward and its input
/// gradient have two pieces: between them rows travel to the experts and come back.
template <class Scalar>
std::shared_ptr<const layer<Scalar>> moe_layer(const gpt_shape& dims, int number,
                                               const expert_options& experts,
                                               experts_at where);

} // namespace troupe
