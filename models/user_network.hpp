// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/network.hpp"
#include "models/user_layer.hpp"

#include <tl/expected.hpp>

#include <string>

namespace troupe {

/// The network of layers that a user put together; shares ownership of the layers. On
/// error one sentence: there is no layer, layers do not fit together, or a layer is
/// null or invalid. A network that reads tokens and begins with a builtin layer is an
/// error, too. Passes on exceptions of the user's layers. Each layer is a unit by
/// itself where stages are cut.
tl::expected<network<float>, std::string> network_of(const user_network& user);

} // namespace troupe
