// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/nodes/node_links.hpp"

#include <chrono>
#include <string>

namespace troupe {

/// Requests the status of a node, and waits for the answer. The error is one sentence:
/// the node cannot be reached, refuses, or does not answer as a node does.
/// \param timeout longest wait for the connection, and then for the answer
/// \param session identity of the run whose leader asks; zeros: no leader asks
tl::expected<mail::node_status, std::string>
status_of(const node_address& where, connector& links,
          std::chrono::milliseconds timeout, const session_id& session = {});

} // namespace troupe
