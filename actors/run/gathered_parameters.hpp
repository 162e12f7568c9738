// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/handles.hpp"
#include "actors/run/run_result.hpp"

#include <string>
#include <vector>

namespace troupe {

/// The parameters of the whole network, put together from the parts that stages hold. A
/// stage holds each layer's bucket, or a tensor shard of the bucket. With ZeRO 3 a
/// stage holds only a data replica's share of that array.
class gathered_parameters {
public:
  /// \param parts of all stages in the snapshot (`in_snapshot()`), in any
  /// order; outlive this object
  /// \pre plan.work
  gathered_parameters(const run_plan& plan, const std::vector<mail::snapshot>& parts);

  /// One bucket for each layer, of fp32 values. The pointers are valid as long as this
  /// object and `parts`.
  const std::vector<const float*>& buckets() const { return buckets_; }

private:
  // one for each layer; all empty if each stage holds whole buckets
  std::vector<std::vector<float>> put_together_;
  std::vector<const float*> buckets_;
};

/// Keeps in `result` the parameters of all stages, and the gradients if the plan keeps
/// gradients. Sets `odd_stage` to the first stage whose parameters differ from the copy
/// of an earlier replica or tensor shard. If data replicas may end with different
/// versions (replicas_agree()), only parts of replica 0 count. Values in
/// `shared` replace the parameters. Does nothing in a simulation, or without parts.
void keep_weights(const run_plan& plan, std::vector<mail::collected> parts,
                  const all_shared_parameters& shared, run_result& result);

/// Keeps in `result` the versions that stages made, each put together from all stages,
/// with gradients. If `odd_stage` is empty, sets `odd_stage` by the same comparison as
/// keep_weights(), in each version.
/// \pre plan.work, or `versions_made` is empty
void keep_versions(const run_plan& plan, std::vector<mail::version_made> versions_made,
                   run_result& result);

/// Sets the numbers of updates and of updated samples in `result`, from the numbers in
/// `parts`; numbers before the run are included. Returns a text with two stages that
/// should have made the same number of updates, but did not. The text is empty if all
/// stages that stop together agree, under a local rule, and without parts. Without
/// parts the call sets nothing.
std::string count_updates(const run_plan& plan,
                          const std::vector<mail::collected>& parts,
                          run_result& result);

} // namespace troupe
