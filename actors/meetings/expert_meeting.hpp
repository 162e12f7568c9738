#pragma once

#include "actors/mail/messages.hpp"
#include "actors/pipeline/stage_tensors.hpp"
#include "actors/plan/run_plan.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace troupe {

/// How much tensor memory experts take on the rank of a stage; sizes in values, of the
/// largest microbatch.
struct expert_sizes {
  std::int64_t rows = 0;    ///< That one data replica may send one expert.
  int sources = 0;          ///< Data replicas that do.
  std::int64_t width = 0;   ///< Of a row.
  std::int64_t stash = 0;   ///< Of one expert and microbatch.
  std::int64_t scratch = 0; ///< Of one expert.
  std::int64_t payload = 0; ///< Of one message.

  /// All, for the experts of a stage that stand with it.
  /// \param a_layer experts in a layer \param stashes of the stage
  std::int64_t values(int hosted, int a_layer, int stashes) const;
};

/// \param expert in the network's list \pre plan.work
expert_sizes sizes_of_expert(const run_plan& plan, int expert);

/// Values of a row to an expert; where nothing is computed a row is a value.
std::int64_t width_of_rows(const run_plan& plan);

/// The share of an action's work that is its experts' where nothing is computed: that
/// of one feed-forward half of four halves of blocks that cost as GPT's do.
inline constexpr double simulated_expert_share = 1.0 / 3;

/// A stage's dealings with the experts of its layers: one exchange after another, in
/// each of which rows go to all experts of a layer, and what these make of them takes
/// the rows' place. It is an all_to_all of unequal parts between the ranks of a group;
/// each part goes straight to the expert that it is for.
class expert_exchange {
public:
  /// \param tensors,account null where nothing is computed
  /// \pre the stage has experts
  expert_exchange(const run_plan& plan, position where, stage_tensors* tensors,
                  memory_account* account);

  /// A message, and to which of the stage's experts.
  using messages = std::vector<std::pair<int, mail::rows_to_expert>>;

  /// Begins the exchange of a layer, counted over the network. \pre done()
  messages begin(const action& a, int version, std::size_t layer,
                 const shard_collective<float>& what);

  void take(const mail::rows_from_expert& answer);

  std::int64_t bytes_of(const mail::rows_to_expert& message) const {
    return message.rows * width_ * std::int64_t{sizeof(float)};
  }

  bool done() const { return missing_.empty(); }

  /// One that it waits for: in the network's list. \pre !done()
  int waits_for() const { return experts_[static_cast<std::size_t>(missing_.front())]; }

  /// The share of an action's work that is the experts'.
  double share() const;

  /// The gradients that experts have summed belong to an update.
  void begin_update() { sums_begun_.clear(); }

  /// Where one of the stage's experts stands.
  position host_of(int of_stage) const;

  /// How rows fell to experts since it was asked last.
  std::vector<mail::expert_load> take_loads() { return std::exchange(loads_, {}); }

private:
  bool belongs_to(int expert, std::size_t layer) const;
  std::int64_t rows_for(int expert, const shard_collective<float>& what) const;
  std::optional<mail::expert_loan> loan_for(int of_stage, const action& a, int version);

  const run_plan* plan_;
  position where_;
  stage_tensors* tensors_;   // null where nothing is computed
  std::vector<int> experts_; // of the stage, in the network's list
  std::vector<layer_bucket> buckets_;
  std::unique_ptr<pool> payloads_; // null where nothing is computed
  std::int64_t width_;             // of a row
  float* array_ = nullptr;
  std::vector<std::pair<std::int64_t, std::int64_t>> places_; // of each expert's rows
  std::vector<int> missing_;                                  // of the stage's
  std::vector<std::size_t> sums_begun_;                       // layers
  std::vector<mail::expert_load> loads_;
};

} // namespace troupe
