// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/layer.hpp"

#include <string>

namespace troupe {

/// PyTorch's nn.Linear, followed by a ReLU if `rectified`: y = x w^T + b; w is [out,
/// in]. Parameters `name`.weight and `name`.bias begin uniform within 1/sqrt(in).
template <class Scalar>
std::shared_ptr<const layer<Scalar>>
linear_layer(const std::string& name, std::int64_t in, std::int64_t out, bool rectified,
             const layer_position& position = {});

} // namespace troupe
