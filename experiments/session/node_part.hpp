#pragma once

#include "actors/plan/run_plan.hpp"
#include "messaging/mail/nodes.hpp"

#include <tl/expected.hpp>

#include <cstdint>
#include <filesystem>
#include <string>

namespace troupe {

/// What a node lets runs take.
struct node_limits {
  int threads = 1;
  int most_ranks = 0;           ///< 0: any number.
  std::int64_t most_memory = 0; ///< Bytes of tensors; 0: what the machine has.
  std::filesystem::path folder; ///< What runs may read files of.
};

/// The plan of a run that another process leads, from what that says. On error says
/// what the node does not allow, or what is wrong.
tl::expected<run_plan, std::string> plan_of_part(const mail::prepare& facts,
                                                 const node_limits& limits);

} // namespace troupe
