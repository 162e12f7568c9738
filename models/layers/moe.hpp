// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/layers/gpt.hpp"
#include "models/model_options.hpp"

namespace troupe {

// Mixture of experts: several feed-forward networks in the place of one, of which a
// gate chooses some for each token (Shazeer et al., "Outrageously Large Neural
// Networks", 2017). Parameters are called as in gpt.hpp: `mlp.router.weight` [C, n],
// and c_fc and c_proj of `mlp.experts.E.` and of `mlp.shared.`. Each c_proj begins as
// that of the feed-forward network whose place its expert takes.

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
