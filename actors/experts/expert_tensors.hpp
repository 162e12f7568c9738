#pragma once

#include "actors/experts/expert_work.hpp"
#include "actors/plan/run_plan.hpp"
#include "actors/rank/rank_memory.hpp"
#include "kernels/pool.hpp"

#include <memory>
#include <unordered_map>
#include <vector>

namespace troupe {

/// What an expert keeps of microbatches, and what it computes with. All memory is taken
/// when it is made.
class expert_tensors : public expert_work {
public:
  /// \param expert in the network's list
  expert_tensors(const run_plan& plan, position where, int expert, int stashes,
                 rank_memory& memory, stream& on);

  double operations_of_stage() const override { return operations_of_stage_; }
  double share_of(std::int64_t rows, std::int64_t samples) const override {
    return network_->operations() * static_cast<double>(rows)
           / (operations_of_stage_ * static_cast<double>(samples));
  }
  void compute(const rows_by_source& by_source) override;
  std::vector<buffer> results(const rows_by_source& by_source) override;

private:
  std::int64_t gather(const rows_by_source& by_source, float* to);

  std::shared_ptr<const layer<float>> network_;
  double operations_of_stage_;
  expert_sizes sizes_;
  stream& on_;
  pool stashes_, answers_;
  tensor_memory scratch_;
  std::unordered_map<int, buffer> held_; // stashes by microbatch
  const float* made_ = nullptr;
};

} // namespace troupe
