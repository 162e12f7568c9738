// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Operations of a model by its formula, the yardstick beside measured rates.

#include "models/model_options.hpp"
#include "models/network.hpp"

#include <cstdint>

namespace troupe {

/// Multiplications and additions of a training step of one token: 6 a parameter without
/// embeddings, and causal attention, of which a position computes half of all pairs:
/// 6 L T C for L layers, T positions and width C (Chowdhery et al., "PaLM", 2022,
/// appendix B, has twice that, without the mask).
inline double operations_a_token(const network<float>& whole, const model_options& m) {
  std::int64_t parameters = 0;
  for (const auto* p : whole.parameters())
    if (!p->name.ends_with("wte.weight") && !p->name.ends_with("wpe.weight"))
      parameters += p->values();
  return 6.0 * static_cast<double>(parameters + m.layers * m.length * m.width);
}

} // namespace troupe
