// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The operations of a model by formula, the yardstick for measured rates.

#include "models/model_options.hpp"
#include "models/network.hpp"

#include <cstdint>

namespace troupe {

/// Multiplications and additions of a training step, for one token. Each parameter
/// outside the embeddings costs 6. Causal attention costs 6 L T C for L layers, T
/// positions and width C, as a position computes half of all pairs on average.
/// Chowdhery et al., "PaLM", 2022, appendix B, counts 12 L T C, without the causal
/// mask.
inline double operations_a_token(const network<float>& whole, const model_options& m) {
  std::int64_t parameters = 0;
  for (const auto* p : whole.parameters())
    if (!p->name.ends_with("wte.weight") && !p->name.ends_with("wpe.weight"))
      parameters += p->values();
  return 6.0 * static_cast<double>(parameters + m.layers * m.length * m.width);
}

} // namespace troupe
