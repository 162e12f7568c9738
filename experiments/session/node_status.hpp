#pragma once

#include "experiments/session/node_links.hpp"

#include <chrono>
#include <string>

namespace troupe {

/// What a node says that it does. On error says that it cannot be reached, or does not
/// answer as a node does.
tl::expected<mail::node_status, std::string>
status_of(const node_address& where, connector& links,
          std::chrono::milliseconds patience);

} // namespace troupe
