// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/layers/gpt.hpp"
#include "models/model_options.hpp"

namespace troupe {

// Mixture of experts (Shazeer et al., "Outrageously Large Neural Networks", 2017).
// Several feed-forward networks take the place of one, and a gate chooses some for each
// token. Parameters have names as in gpt.hpp: `mlp.router.weight` [C, n], and c_fc and
// c_proj of `mlp.experts.E.` and of `mlp.shared.`. Each c_proj begins with the
// deviation of the feed-forward network that the expert replaces.

/// The location of a layer's experts: in the layer, or in actors of their own. A shared
/// expert is always in the layer.
enum class expert_location : std::uint8_t { local, remote };

/// The second half of block `number`: y = x + the weighted outputs of the chosen
/// experts for ln_2(x). For a token whose chosen experts are all full, y = x. A shared
/// expert (`experts.shared`) belongs to the layer, and its output is added to y for
/// every token. With remote experts, the layer has none of the other experts'
/// parameters. The forward and the input gradient then have two pieces: between the
/// pieces rows travel to the experts and back.
/// \param where location of the experts
template <class Scalar>
std::shared_ptr<const layer<Scalar>> moe_layer(const gpt_shape& dims, int number,
                                               const expert_options& experts,
                                               expert_location where);

} // namespace troupe
