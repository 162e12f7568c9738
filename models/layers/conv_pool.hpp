#pragma once

#include "models/layer.hpp"

#include <string>

namespace troupe {

/// A convolution of K by K filters on C planes of `side` by `side` pixels, ReLU, and
/// max-pooling of 2 by 2. Parameters `name`.weight [O, C, K, K] and `name`.bias [O]
/// begin uniform within 1/sqrt(C K K), as PyTorch's nn.Conv2d. It reads fp32: what is
/// rounded before a pooling makes that choose other pixels.
/// \param writes what its output is stored as
template <class Scalar>
std::shared_ptr<const layer<Scalar>>
conv_pool_layer(const std::string& name, std::int64_t channels, std::int64_t side,
                std::int64_t filters, std::int64_t size,
                precision writes = precision::fp32);

} // namespace troupe
