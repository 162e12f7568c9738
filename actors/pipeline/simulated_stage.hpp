// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/pipeline/stage_work.hpp"

#include <memory>

namespace troupe {

/// The work of a stage in a simulation: costs and sizes without arithmetic. Layers have
/// equal cost and one bucket each, and are cut into equal pieces. One layer's number of
/// pieces covers all layers together if no meeting, optimizer or recomputation needs
/// single layers.
///
/// With tensor shards, a pass through all layers has `plan.sizes.sums` sums at equal
/// distances; the last sum follows the last piece. With sequence parallelism, each sum
/// is a gather before its pieces and a scatter after these pieces. A weight gradient
/// has no meeting of tensor shards. Experts receive rows once in such a pass, after the
/// first piece. Backwards, input gradients and weight gradients begin with the last
/// layer. With recomputation, a backward or input gradient also recomputes each segment
/// but the last, which the recompute action has recomputed. Buffers are empty.
class simulated_stage : public stage_inputs,
                        public stage_passes,
                        public weight_versions {
public:
  /// \param plan outlives this object
  simulated_stage(const run_plan& plan, position where);

  pass_pieces<float> pieces(const pass_request& pass) override;
  summed_gradients gradients() const;

  void put_input(int, buffer) override {}
  void put_labels(int, buffer) override {}
  void put_gradient(int, buffer) override {}
  bool has_inputs(int) const override { return true; }
  bool leaves_at_launch(op) const override { return false; }
  std::shared_ptr<gpu_completion> reader_before(op, int) override { return {}; }
  buffer take_message(op, int) override { return {}; }
  std::optional<loss_sum> end_forward(int) override { return {}; }
  void end_backward(op, int) override {}
  std::vector<buffer> parameters(int) const override { return {}; }
  std::vector<weight_bucket<float>> stored(int) const override { return {}; }
  update_buffers prepare_update(const update_facts&) override { return {}; }
  void keep_only(const stage_version_ledger&) override {}
  parameter_copy copy(int) override { return {}; }

private:
  const run_plan* plan_;
  int stage_;
  bool has_experts_;
};

/// The work of a simulated stage.
stage_work stage_work_of(const std::shared_ptr<simulated_stage>& stage);

} // namespace troupe
