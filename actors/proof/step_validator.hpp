// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/proof/difference.hpp"
#include "actors/run/perform.hpp"
#include "models/plain_loop.hpp"
#include "plan/run_plan.hpp"

#include <string>

namespace troupe {

/// True if a run sums in another order than any plain loop: with tensor shards, or with
/// experts that serve several data replicas.
bool sums_elsewhere(const run_plan& plan);

/// Checks a run of sums_elsewhere() update by update, against a loop over the same
/// microbatches. Rounding errors differ and grow with every update, so the loop takes
/// over the run's values at each update. The loop's gradients must be near the run's
/// gradients. The loop's update of the run's gradients must give the run's next
/// version. Each loss may differ from the loop's loss by at most 1e-5 times the loop's
/// loss. The run's final parameters must equal the run's last version.
///
/// Near means: the norm of a tensor's difference is at most the tolerance times a
/// limit. The limit is the tensor's norm or a hundredth of the stage's norm, whichever
/// is larger. Some gradients are nothing but rounding: softmax ignores a key's bias. An
/// error that drops or doubles part of a sum is far larger than the tolerance. The
/// optimizer gives the same bits from the same gradients. One exception: tensor shards
/// sum the norm for clipping in another order.
class step_validator : public update_witness {
public:
  /// The tolerance where values are stored as fp32, and products are not rounded to
  /// tf32.
  static constexpr double tolerance = 2e-5;

  /// The tolerance where values are stored as bf16. Two values that differ by a
  /// rounding of fp32 may round to bf16 neighbours, which differ by 2^-8 to 2^-7 of the
  /// value. All later layers round the results again. In 1500 runs of small networks
  /// the largest difference was 2.5e-3; large networks may differ more. In 120 runs
  /// whose shards dropped a sum, each difference was below 1e-3 or above this bound.
  static constexpr double tolerance_of_bf16 = 0x1p-7;

  /// The tolerance where a GPU's products round fp32 to tf32. Only operands of products
  /// are rounded, each by at most 2^-11 of the value.
  static constexpr double tolerance_of_tf32 = 2.5e-4;

  /// \param plan,result outlive this object
  /// \pre plan.work, the plan keeps versions, and the run has finished
  step_validator(const run_plan& plan, const run_result& result)
    : plan_(plan), result_(result), allowed_(tolerance_for(plan)) {
    // nop
  }

  /// The tolerance for a run: by the storage of values, by the encoding of gradients in
  /// messages, and by the processor of rank 0.
  /// \pre plan.work
  static double tolerance_for(const run_plan& plan) {
    const bool encodes =
      plan.mesh[axis::data] > 1 && plan.exchange->compression != &fp32_codec();
    if (plan.work->whole.options.stored == precision::bf16 || encodes)
      return tolerance_of_bf16;
    return plan.machine.processor_of(0).tf32 ? tolerance_of_tf32 : tolerance;
  }

  void summed(int stage, int version, const std::vector<float*>& gradients) override;
  void updated(int stage, int version, const std::vector<float*>& parameters) override;

  /// Returns the proof, after a loop that called this witness at each update.
  /// \param name of the proof
  /// \param loop the loop's results
  proof judged(const std::string& name, const trained& loop);

private:
  const kept_version* run_of(int version);
  std::vector<float> parameters_of(int version, std::size_t layer) const;
  void note(const std::string& error);
  void judge_gradients(int version, std::size_t layer, const parameter& p,
                       const float* run, const float* loop, double stage_norm);
  void judge_parameters(int version, std::size_t layer, const parameter& p,
                        const float* run, const float* loop, const float* previous);
  std::size_t first_layer(int stage) const;

  const run_plan& plan_;
  const run_result& result_;
  double allowed_;      // largest difference, as a fraction of a norm
  std::string error_;   // the first one found
  double furthest_ = 0; // largest ratio of a gradient's difference to the allowed
                        // difference
};

} // namespace troupe
