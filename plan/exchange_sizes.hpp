// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/collective.hpp"
#include "messaging/collective_part.hpp"
#include "plan/layout.hpp"
#include "plan/run_plan.hpp"

#include <cstdint>

// Sizes of the messages that data replicas and tensor shards exchange. The meetings
// make pools of these sizes, and the memory needs of a plan count them.

namespace troupe {

/// A data replica's part in a collective of the exchange between data replicas.
/// \param group the replicas that exchange the values, and this replica's index
/// \pre the plan has an exchange with a collective for `step`
collective_part replica_part(const run_plan& plan, exchange_step step,
                             const bucket_group& group, std::int64_t values,
                             int instance = 0);

/// The number and size of the buffers that one data replica's messages of one bucket
/// need, in the exchange of an update between data replicas.
/// \param group the replicas that exchange the bucket, and the sending replica's index
/// \param values number of values in the bucket
/// \pre the plan has an exchange with a collective for `step`
payload_bound copies_of_bucket(const run_plan& plan, exchange_step step,
                               const bucket_group& group, std::int64_t values);

/// The size of the buffers of copies_of_bucket() for all buckets of a stage together,
/// with padding, as a number of 4-byte values.
/// \pre the plan has an exchange with a collective for `step`
std::int64_t exchanged_values(const run_plan& plan, position where, exchange_step step);

/// A tensor shard's part in a collective of the shards.
/// \param instance number that distinguishes collectives which are in progress together
collective_part shard_part(const run_plan& plan, position where,
                           const shard_collective<float>& collective, int instance);

/// The number and size of the buffers that messages of a tensor shard's collective
/// need.
payload_bound copies_of_shards(const run_plan& plan, position where,
                               const shard_collective<float>& collective);

} // namespace troupe
