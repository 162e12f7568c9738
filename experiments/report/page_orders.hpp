// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe {

struct run_plan;

/// The orders of a schedule as JSON. The page lays out the timeline of each order again
/// when the reader changes costs of actions. An order covers at most three batches
/// (`steps`). The first order has the ranks of one pipeline and the microbatches of one
/// data replica. The others have half, twice or four times as many ranks or
/// microbatches, or both. An order is left out if the schedule does not allow the
/// sizes. So is an order with which all orders would have more than about 60,000
/// actions; if that is the first order, the list is empty. An order is
/// {"ranks", "stages", "microbatches", "steps", "rows"}. A row holds the actions of a
/// rank: "0F0 0F1 0B0", each as stage, operation and microbatch. "1:" before an action
/// is direction 1; "+" after an action joins the action with the next one. Rows of a
/// local rule are empty, as the rule has no order.
/// \pre the run has one data replica, one tensor shard and no expert axis
std::string orders_json(const run_plan& plan);

} // namespace troupe
