// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/handles.hpp"
#include "actors/run/run_result.hpp"

#include <string>
#include <vector>

namespace troupe {

/// The parameters of the whole network, put together from the parts that stages hold. A
/// stage holds all of a layer's bucket, or a tensor shard's part. Of that the stage
/// holds everything, or a data replica's share.
class gathered_parameters {
public:
  /// \param parts of all stages in the snapshot (`run_plan::in_snapshot`), in any
  /// order; outlive this object
  gathered_parameters(const run_plan& plan, const std::vector<mail::snapshot>& parts);

  /// One bucket for each layer.
  const std::vector<const float*>& buckets() const { return buckets_; }

private:
  // one for each layer, if stages hold parts
  std::vector<std::vector<float>> put_together_;
  std::vector<const float*> buckets_;
};

/// Keeps the parameters and gradients of all stages, as far as the plan wants them, and
/// notes a stage whose copy differs from another's. Where data replicas update
/// parameters one by one, the shared parameters are the network's.
void keep_weights(const run_plan& plan, std::vector<mail::collected> parts,
                  const all_shared_parameters& shared, run_result& result);

/// Keeps the versions that stages made, each version put together from all stages.
void keep_versions(const run_plan& plan, std::vector<mail::version_made> versions_made,
                   run_result& result);

/// Counts the updates in each stage's final parameters. Empty if all stages hold one
/// network; otherwise names two stages that should have made equally many updates, but
/// did not.
std::string count_updates(const run_plan& plan,
                          const std::vector<mail::collected>& parts,
                          run_result& result);

} // namespace troupe
