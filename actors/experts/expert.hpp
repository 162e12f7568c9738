#pragma once

#include "actors/mail/messages.hpp"
#include "actors/mail/props.hpp"
#include "actors/meetings/expert_meeting.hpp"
#include "actors/rank/rank_memory.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace troupe {

/// What an expert keeps of microbatches, and what it computes with.
class expert_tensors {
public:
  /// \param expert in the network's list
  expert_tensors(const run_plan& plan, position where, int expert, int stashes,
                 rank_memory& memory, team& threads);

  const layer<float>& network() const { return *network_; }

  /// Puts the rows of all sources behind one another and computes: a forward its
  /// outputs, any other pass gradients. \param by_source all of one pass
  void compute(const std::vector<mail::rows_to_expert>& by_source);

  /// What has been made of the rows of each source; empty where there were none.
  std::vector<buffer> results(const std::vector<mail::rows_to_expert>& by_source);

private:
  std::int64_t gather(const std::vector<mail::rows_to_expert>& by_source, float* to);

  std::shared_ptr<const layer<float>> network_;
  expert_sizes sizes_;
  team& threads_;
  pool stashes_, answers_;
  tensor_memory scratch_;
  std::unordered_map<int, buffer> held_; // stashes by microbatch
  const float* made_ = nullptr;
};

/// An expert without its mailbox: gathers the rows of one pass from all data replicas
/// that it serves.
class expert_core {
public:
  /// \param in_stage its number among the experts of its stage
  /// \param tensors null where nothing is computed
  expert_core(const run_plan& plan, position where, int expert, int in_stage,
              std::shared_ptr<expert_tensors> tensors);

  const std::string& name() const { return name_; }

  /// Returns whether all rows of the pass are here now.
  /// \throws std::logic_error if a source sends twice, or another pass than the others
  bool take(const mail::rows_to_expert& rows);

  /// Whether no data replica sent it any rows, and it has no gradients to set to 0.
  /// \pre take() has returned true
  bool idle() const;

  /// The arithmetic of the pass.
  work next_work();

  /// Its part of the stage's action, without its times; and the answers, by source.
  sample made() const;
  std::vector<mail::rows_from_expert> end();

  /// How many bytes an answer has.
  std::int64_t bytes_for(int source) const;

  mail::waiting_for explain() const;

private:
  double share_of(std::int64_t rows) const;

  const run_plan* plan_;
  position where_;
  std::string name_;
  int expert_; ///< In the network's list.
  int in_stage_;
  std::int64_t width_;                      ///< Of a row.
  std::shared_ptr<expert_tensors> tensors_; ///< Null where nothing is computed.
  std::vector<std::optional<mail::rows_to_expert>> inbox_; // by source
  std::vector<mail::rows_to_expert> pass_;                 // when all are here
};

struct expert_state {
  std::string name = "expert";
  props shared;
  device* computer = nullptr; ///< Of its rank.
  int on_rank = 0;            ///< Its number there.
  position where{};           ///< The stage that it stands with.
  std::unique_ptr<expert_core> core;
  expert_peers peers;
};

/// One expert of one layer, on one rank: hears rows from the stages of all data
/// replicas that it serves, computes when its scheduler says so, and answers each.
expert_actor::behavior_type expert(expert_actor::stateful_pointer<expert_state> self,
                                   props shared, device* computer, position where,
                                   int number, int in_stage, int on_rank,
                                   std::shared_ptr<expert_tensors> tensors);

} // namespace troupe
