// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/convolution.hpp"
#include "models/layer.hpp"

#include <string>

namespace troupe {

/// A convolution, ReLU, and max-pooling of 2 by 2. Parameters `name`.weight [O, C, K,
/// K] and `name`.bias [O] begin uniform within 1/sqrt(C K K), as PyTorch's nn.Conv2d.
/// The layer reads fp32: an input rounded before a pooling would make the pooling
/// choose other pixels.
/// \param image one sample; the convolution's outputs have an even height and width
/// \param writes precision of the stored output
template <class Scalar>
std::shared_ptr<const layer<Scalar>>
conv_pool_layer(const std::string& name, const convolution_shape& image,
                precision writes = precision::fp32);

} // namespace troupe
