// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/meetings/expert_meeting.hpp"
#include "actors/meetings/layer_meeting.hpp"
#include "actors/meetings/tensor_meeting.hpp"
#include "actors/pipeline/stage_work.hpp"
#include "actors/rank/weave.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace troupe {

/// The meetings of a stage that the plan asks for: with tensor shards, data replicas
/// and experts. A new way to divide a stage's work is a new meeting here.
class stage_meetings {
public:
  /// \param plan outlives the meetings, as do the objects to which `memory` refers
  /// \param account for the buffers of rows to experts; outlives the meetings; unused,
  /// and may be null, where nothing is computed
  /// \param groups finds the GPU group of a meeting; may be empty; objects to which the
  /// function refers outlive the meetings
  stage_meetings(const run_plan& plan, position where, const meeting_memory& memory,
                 memory_account* account, group_finder groups = {});

  /// The meetings that the stage has; valid as long as this object.
  meeting_list list();

  /// Sets the function by which meetings request sums, and the launches of exchanges
  /// between GPUs. No effect if sums take no time and no GPUs exchange arrays.
  /// \pre no step of a meeting has begun
  void yield(const sum_requester& request_sum);

  /// True if data replicas gather or sum each layer in a pass of this operation.
  bool by_layer(op operation) const { return weaving_of(operation).by_layer(); }

  /// To be called when an action begins: puts the action's meetings between its pieces.
  /// Multiplies the pieces' shares of the cost by stage_share().
  /// \param version of the weights that the action reads
  /// \param begins_sum whether the action's gradients are the first of an update
  woven_action weave(const action& a, int version, bool begins_sum,
                     pass_pieces<float> pass);

  /// Passes a message to the stage's meeting of the message's kind. Returns the
  /// messages to send.
  /// \pre the stage has a meeting of this kind
  meeting_messages receive(mail::meeting_message message) {
    return list().meeting_of(message.meeting).receive(std::move(message));
  }

  /// The share of an action's operations outside the stage's experts, from 0 to 1; 1 if
  /// the stage has no experts.
  double stage_share() const { return alone_ || !experts_ ? 1 : 1 - experts_->share(); }

  /// Returns the loads since the last call, one for each forward of a layer with
  /// experts: the rows sent to each expert, and the dropped rows. Empty without
  /// experts, and in a simulation.
  std::vector<mail::expert_load> take_loads();

  /// To be called when an update begins: the gradients summed so far belong to this
  /// update, and later gradients start new sums.
  void begin_update();

private:
  weaving weaving_of(op operation) const;
  void expect(const action& a, int version, bool begins_sum,
              const pass_pieces<float>& pass);

  bool yields_sums_;
  group_finder groups_;
  bool alone_; // no meetings: the members below are unused
  bool sums_layers_, gathers_layers_;
  std::size_t first_layer_; // of the stage, in the network
  std::optional<tensor_meeting> shards_;
  std::optional<layer_meeting> layers_;
  std::optional<expert_meeting> experts_;
};

} // namespace troupe
