// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/layers/gpt.hpp"

#include <memory>
#include <string>

namespace troupe {

/// One expert alone: c_proj(gelu(c_fc(x))). What a layer calls a sample is a row of C
/// values here, fp32 whatever is stored.
/// \param name of its parameters, before c_fc and c_proj
template <class Scalar>
std::shared_ptr<const layer<Scalar>> expert_layer(const gpt_shape& dims,
                                                  const std::string& name);

/// What a block's experts are called: "transformer.h.1.mlp.experts.0.".
std::string expert_name(int block, int expert);

} // namespace troupe
