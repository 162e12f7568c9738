// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/nodes/node_limits.hpp"
#include "experiments/options/own_parts.hpp"
#include "messaging/mail/nodes.hpp"
#include "plan/run_plan.hpp"

#include <tl/expected.hpp>

#include <string>

namespace troupe {

/// The plan of a run that another process leads, from the facts in the leader's
/// message. The error is one sentence: a limit of the node, missing memory, data or
/// GPUs, other bits of bf16 products, or a mistake in the message.
/// \param own network and data of the node's program
tl::expected<run_plan, std::string> plan_of_part(const mail::prepare& facts,
                                                 const node_limits& limits,
                                                 const own_parts& own = {});

} // namespace troupe
