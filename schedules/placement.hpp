#pragma once

#include "schedules/shape.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// Which rank hosts which stages.
///
///   linear          rank 0   1   2   3      bidirectional   rank 0   1   2   3
///                        s0  s1  s2  s3       replica 0          s0  s1  s2  s3
///                                             replica 1          s3  s2  s1  s0
enum class placement : std::uint8_t { linear, bidirectional };

/// A stage of one replica of the pipeline.
struct hosted_stage {
  int replica;
  int stage;

  bool operator==(const hosted_stage&) const = default;
};

/// "stage 2", "stage 2 (replica 1)".
std::string stage_name(hosted_stage where);

/// How many pipelines run through the ranks.
int replicas_of(placement where);

/// The rank that hosts a stage.
int rank_of(placement where, const shape& dims, hosted_stage what);

/// What `rank` hosts, by stage, so that all ranks meet shared updates in one order.
std::vector<hosted_stage> hosted_by(placement where, const shape& dims, int rank);

/// Index in the run of the `k`-th microbatch (counted over the run) of a replica. A
/// batch is dealt out in equal contiguous shares, replica 0 first.
int microbatch_of(placement where, const shape& dims, int replica, int k);

/// The replica that a microbatch runs through.
int replica_of(placement where, const shape& dims, int microbatch);

} // namespace troupe
