// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/handles.hpp"
#include "actors/run/run_result.hpp"

#include <string>
#include <vector>

namespace troupe {

/// The parameters of the whole network, from what each stage holds of it: of a layer's
/// bucket all, or a tensor shard's part, and of that all, or a data replica's share.
class whole_weights {
public:
  /// \param parts of all stages that show theirs, in any order; outlive it
  whole_weights(const run_plan& plan, const std::vector<mail::snapshot>& parts);

  /// A bucket a layer.
  const std::vector<const float*>& buckets() const { return buckets_; }

private:
  std::vector<std::vector<float>> put_together_; // a layer each, if it was in parts
  std::vector<const float*> buckets_;
};

/// Keeps the parameters and gradients of all stages, as far as the plan wants them, and
/// notes a stage whose copy differs from another's. Where data replicas update
/// parameters one by one, the shared parameters are the network's.
void keep_weights(const run_plan& plan, std::vector<mail::collected> all,
                  const all_shared_parameters& shared, run_result& result);

/// Keeps the versions that stages made, each put together from all of them.
void keep_versions(const run_plan& plan, std::vector<mail::version_made> all,
                   run_result& result);

/// Counts the updates that what stages have in the end has been through. Empty if it is
/// one network's; else names two stages that should have made as many, and have not.
std::string count_updates(const run_plan& plan, const std::vector<mail::collected>& all,
                          run_result& result);

} // namespace troupe
