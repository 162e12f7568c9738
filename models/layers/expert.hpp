// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/layers/gpt.hpp"

#include <memory>
#include <string>

namespace troupe {

/// One expert alone: c_proj(gelu(c_fc(x))). A sample of this layer is a row of C
/// values, fp32 whatever the precision of stored activations.
/// \param name prefix of the parameters' names, before c_fc and c_proj
template <class Scalar>
std::shared_ptr<const layer<Scalar>> expert_layer(const gpt_shape& dims,
                                                  const std::string& name);

/// The prefix of an expert's parameter names: "transformer.h.1.mlp.experts.0.".
std::string expert_name(int block, int expert);

} // namespace troupe
