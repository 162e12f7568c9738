// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/gpu_completion.hpp"
#include "messaging/mail/meeting_messages.hpp"
#include "messaging/record.hpp"
#include "models/slice.hpp"
#include "schedules/action.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// One step of a meeting: the kind, and the index by which that kind of meeting names
/// the step.
struct meeting_step {
  meeting_kind kind;
  int index;

  bool operator==(const meeting_step&) const = default;
};

using meeting_steps = std::vector<meeting_step>;

/// Work of an action between two meetings.
struct piece {
  /// Index of the layer in the stage, if the piece is of one layer; else -1.
  int layer = -1;
  double share = 1;          ///< Share of the action's cost, from 0 to 1.
  std::function<void()> run; ///< Empty: no arithmetic.
  bool costs = true;         ///< False: takes no time in virtual time.
  /// True if the scheduler may run one other action of this rank before this piece.
  bool yields = false;
  meeting_steps needs = {};   ///< Steps that must be over before the piece starts.
  meeting_steps begins = {};  ///< Steps that begin when the piece starts.
  meeting_steps ends_in = {}; ///< Steps that begin when the piece has ended.
  /// Buckets, by index in the stage, whose gradients are complete after this piece.
  std::vector<int> completes{};
  std::uint8_t end = nothing; ///< Flags for the record (`part_end`).
};

/// An action as pieces, which run one after another.
struct woven_action {
  meeting_steps begins; ///< Steps that begin with the action, before the first piece.
  std::vector<piece> pieces;
  /// Completions of earlier GPU works whose results the first piece reads. The first
  /// piece gets these completions as `work::inputs`. Empty for an action with meetings
  /// between pieces.
  std::vector<std::shared_ptr<gpu_completion>> inputs = {};
};

/// The layer meetings of a pass.
struct weaving {
  bool gathers = false; ///< Data replicas gather each layer's parameters.
  bool sums = false;    ///< Data replicas sum each layer's gradients.

  bool by_layer() const { return gathers || sums; }
};

/// Puts meetings between the pieces of a pass:
/// - A meeting of tensor shards or experts begins when a piece has ended, and the next
///   piece needs that meeting. These meetings have indexes from 0, in order of pieces.
/// - gather(next layer) begins when a layer starts, and a layer needs its own gather.
///   So the next layer's parameters travel while this layer computes. The first gather
///   begins with the action.
/// - sum(layer) begins when a layer has ended. Buffers hold two layers, so a layer
///   needs the sum of the layer before the previous one. With sums, a last piece
///   without arithmetic is added, which needs the last two sums, or the only sum.
///
///   layer         2            1            0          of a backward, three layers
///   gather   2    1            0
///   compute       ===          ===          ===
///   sum                2            1            0
///
/// \pre `pass` has a piece, and no collective after the last piece
woven_action weave(pass_pieces<float> pass, weaving options);

/// Text of an action, one line for each piece: the meetings that the piece needs,
/// begins and ends in. For tests, and for readers who inspect which meetings overlap
/// with computation.
std::string to_string(const woven_action& woven);

} // namespace troupe
