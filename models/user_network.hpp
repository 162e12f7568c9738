// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/network.hpp"
#include "models/user_layer.hpp"

#include <tl/expected.hpp>

#include <string>

namespace troupe {

/// The network of layers that a user put together; on error one sentence about layers
/// that do not fit together. Each layer is a unit by itself where stages are cut.
tl::expected<network<float>, std::string> network_of(const user_network& user);

} // namespace troupe
