// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/experts/expert_work.hpp"
#include "actors/rank/rank_memory.hpp"
#include "kernels/pool.hpp"
#include "plan/run_plan.hpp"

#include <memory>
#include <unordered_map>
#include <vector>

namespace troupe {

/// An expert's stored activations and compute buffers. The constructor allocates all
/// memory, and throws std::bad_alloc if memory is short.
class expert_tensors : public expert_work {
public:
  /// \param expert index in the network's list of experts
  /// \param stashes largest number of microbatches that are stashed at the same time
  /// \param split largest number of microbatches whose I has run and whose W has not
  /// \param memory outlives this object
  /// \param compute_stream outlives this object
  expert_tensors(const run_plan& plan, position where, int expert, int stashes,
                 int split, rank_memory& memory, stream& compute_stream);

  double operations_of_stage() const override { return operations_of_stage_; }
  double share_of(std::int64_t rows, double samples) const override {
    return network_->operations() * static_cast<double>(rows)
           / (operations_of_stage_ * samples);
  }
  void compute(const rows_by_source& by_source) override;
  std::vector<buffer> results(const rows_by_source& by_source) override;

private:
  /// Stored arrays of one microbatch.
  struct held {
    buffer stash;
    buffer split; ///< Kept from I to W: the output's gradient, and other inputs of W.
  };

  frame<float> frame_on(const held& h, const mail::lent_arrays& loan);
  void gather(const rows_by_source& by_source, float* to);

  std::shared_ptr<const layer<float>> network_;
  double operations_of_stage_;
  expert_sizes sizes_;
  stream& stream_;
  bool recomputes_;
  pool stashes_, split_, answers_;
  tensor_memory scratch_;
  std::unordered_map<int, held> held_; // by microbatch
  const float* result_ = nullptr; // the last result to send back; null: nothing is sent
};

} // namespace troupe
