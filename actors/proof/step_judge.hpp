// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"
#include "actors/proof/difference.hpp"
#include "actors/run/company.hpp"
#include "models/plain_loop.hpp"

#include <string>

namespace troupe {

/// Whether a run sums in another order than any plain loop: what tensor shards sum, and
/// experts that serve several data replicas.
bool sums_elsewhere(const run_plan& plan);

/// Judges such a run update by update. Rounding differs and grows with every update, so
/// a loop goes on from what the run had: at each update its gradients must be near the
/// run's, and what it makes of the run's gradients must be the run's next version.
///
/// Near: a tensor's difference is at most `tolerance` of its norm, or of a hundredth of
/// the stage's norm. Some gradients are only rounding: softmax ignores a key's bias.
/// Dropping or doubling any part of a sum is far more. Of the run's gradients the
/// optimizer makes the same bits, except that tensor shards sum norms of clipping in
/// another order.
class step_judge : public update_witness {
public:
  static constexpr double tolerance = 2e-5;

  /// Where values are stored as bf16: what differs by a rounding of fp32 may be rounded
  /// to the other of two neighbours, 2^-8 apart, and all layers that follow round what
  /// comes of that again. Of 1500 runs of small networks the farthest differed by
  /// 2.5e-3, and large ones may by more. What is wrong is far off: where shards forget
  /// a sum no run of 120 was between 1e-3 and this bound.
  static constexpr double tolerance_of_bf16 = 0x1p-7;

  /// Where a GPU's products round fp32 to tf32, the same happens to operands alone, and
  /// neighbours are 2^-11 apart.
  static constexpr double tolerance_of_tf32 = 2.5e-4;

  /// \pre the plan keeps versions; both outlive it
  step_judge(const run_plan& plan, const run_result& result)
    : plan_(plan), result_(result), allowed_(tolerance_for(plan)) {
    // nop
  }

  static double tolerance_for(const run_plan& plan) {
    if (plan.work->whole.options.stored == precision::bf16)
      return tolerance_of_bf16;
    return plan.processor_of(0).tf32 ? tolerance_of_tf32 : tolerance;
  }

  void summed(int stage, int version, const std::vector<float*>& gradients) override;
  void made(int stage, int version, const std::vector<float*>& parameters) override;

  /// What it found in a loop with these results.
  proof judged(const std::string& name, const trained& loop);

private:
  const kept_version* run_of(int version);
  std::vector<float> parameters_of(int version, std::size_t layer) const;
  void note(const std::string& trouble);
  void judge_gradients(int version, std::size_t layer, const parameter& p,
                       const float* run, const float* loop, double stage_norm);
  void judge_parameters(int version, std::size_t layer, const parameter& p,
                        const float* run, const float* loop, const float* before);
  std::size_t first_layer(int stage) const;

  const run_plan& plan_;
  const run_result& result_;
  double allowed_;      // of a norm
  std::string trouble_; // the first
  double furthest_ = 0; // gradients were apart, of what is allowed 1
};

} // namespace troupe
