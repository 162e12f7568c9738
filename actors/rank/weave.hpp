// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/launched_end.hpp"
#include "messaging/mail/letters.hpp"
#include "messaging/record.hpp"
#include "models/slice.hpp"
#include "schedules/action.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// An occasion of a meeting, as that kind of meeting numbers them.
struct appointment {
  meeting_kind with;
  int occasion;

  bool operator==(const appointment&) const = default;
};

using appointments = std::vector<appointment>;

/// Work between two meetings.
struct piece {
  int layer = -1;               ///< Of the stage, if it is of one alone.
  double share = 1;             ///< Of the action's cost.
  std::function<void()> run;    ///< Empty: no arithmetic.
  bool costs = true;            ///< Else it takes no time where time is only counted.
  bool yields = false;          ///< Others of its rank may go before it once.
  appointments needs = {};      ///< That must be over before it starts.
  appointments begins = {};     ///< That begin when it starts.
  appointments ends_in = {};    ///< That begin when it has ended.
  std::vector<int> completes{}; ///< Buckets of gradients that are complete after it.
  std::uint8_t end = nothing;   ///< What the record says of its end (part_end).
};

/// An action in pieces, to be run one after another.
struct woven_action {
  appointments begins; ///< With the action, before its first piece may start.
  std::vector<piece> pieces;
  /// As of work; of whom meets others between its pieces there are none.
  std::vector<std::shared_ptr<launched_end>> inputs = {};
};

/// What the pieces of an action meet.
struct weaving {
  bool gathers = false; ///< The parameters of each layer, among data replicas.
  bool sums = false;    ///< The gradients of each layer, among data replicas.

  bool by_layer() const { return gathers || sums; }
};

/// Puts meetings between the pieces of a pass:
/// - What tensor shards or experts do after a piece begins when it has ended, and the
///   next piece needs it. Occasions count them.
/// - gather(next layer) begins when a layer starts, which needs gather(its own): so the
///   next layer travels while this one is computed on.
/// - sum(layer) begins when a layer has ended. Two layers have a place each: a layer
///   needs the sum of the layer two before it, and the end needs the last two sums.
///
///   layer         2            1            0          of a backward, three layers
///   gather   2    1            0
///   compute       ===          ===          ===
///   sum                2            1            0
woven_action weave(pass_pieces<float> pass, weaving with);

/// A line a piece: what it needs, begins and ends in. For tests, and for whoever wants
/// to see what overlaps with what.
std::string to_string(const woven_action& what);

} // namespace troupe
