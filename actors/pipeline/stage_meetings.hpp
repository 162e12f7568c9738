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

/// The meetings of a stage: those that its plan asks for. A new way to share a stage's
/// work out is a new meeting here.
class stage_meetings {
public:
  /// \param plan,work outlive it \param account for rows to experts; null where nothing
  /// is computed \param groups may be empty
  stage_meetings(const run_plan& plan, position where, stage_work& work,
                 memory_account* account, group_finder groups = {});

  meeting_list list();

  /// Who does sums, and launches what GPUs exchange, if the plan has such.
  void yield(const sum_asker& ask);

  /// Whether somebody waits for each layer of such a pass.
  bool by_layer(op what) const { return weaving_of(what).by_layer(); }

  /// An action begins that reads this version: puts its meetings between its pieces.
  /// \param begins_sum whether its gradients are the first of an update
  woven_action weave(const action& a, int version, bool begins_sum,
                     pass_pieces<float> pass);

  letters take(mail::letter what) {
    return list().at(what.about).take(std::move(what));
  }

  /// The share of an action's work that the stage does itself, and not its experts.
  double own_share() const { return alone_ || !experts_ ? 1 : 1 - experts_->share(); }

  /// How rows fell to experts since it was asked last.
  std::vector<mail::expert_load> take_loads();

  /// The gradients summed so far belong to an update.
  void begin_update();

private:
  weaving weaving_of(op what) const;
  void expect(const action& a, int version, bool begins_sum,
              const pass_pieces<float>& pass);

  bool yields_sums_;
  group_finder groups_;
  bool alone_; // no meetings: nothing below is looked at
  bool sums_layers_, gathers_layers_;
  std::size_t first_layer_; // of the stage, in the network
  std::optional<tensor_meeting> shards_;
  std::optional<layer_meeting> layers_;
  std::optional<expert_meeting> experts_;
};

} // namespace troupe
