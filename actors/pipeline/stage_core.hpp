#pragma once

#include "actors/mail/messages.hpp"
#include "actors/meetings/expert_meeting.hpp"
#include "actors/meetings/layer_meeting.hpp"
#include "actors/meetings/tensor_meeting.hpp"
#include "actors/pipeline/stage_tensors.hpp"
#include "actors/plan/run_plan.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// A stage without its mailbox: what it holds, which actions its inputs allow, and what
/// their ends have to tell to whom. Without tensors it keeps books only.
class stage_core {
public:
  /// \param experts null if none of its layers has any
  stage_core(std::shared_ptr<const run_plan> plan, position where,
             std::shared_ptr<stage_tensors> tensors,
             std::shared_ptr<expert_exchange> experts);

  const std::string& name() const { return name_; }
  position where() const { return where_; }
  bool is_first() const { return where_.stage == 0; }
  bool is_last() const { return where_.stage == plan_->dims.stages - 1; }

  /// Takes an input. Returns the action that it lets run, if it was the last one
  /// missing.
  std::optional<action> take(const activation& input);
  std::optional<action> take(const labels& input);
  std::optional<action> take(const gradient& input);

  /// Begins an action other than an update.
  void begin(const action& a);

  /// Whether the action under way can go on: it may have to wait for what tensor shards
  /// do together, or data replicas that share layers out.
  bool can_go_on() const;

  /// The next work of the action under way, up to where it may have to wait, or to its
  /// end. Where an update sums the gradients of data replicas, `tell` hears of each
  /// bucket that is complete on the way. \pre can_go_on()
  using tell_bucket = std::function<void(const mail::bucket_ready&)>;
  work next_work(const tell_bucket& tell);

  /// That work has ended.
  void end_work();

  /// Messages of what shards or replicas do together.
  void take(const collective_message& message);
  void take(const mail::layer_message& message);
  void take(const mail::rows_from_expert& message) { experts_->take(message); }

  /// What has become due to be sent to other tensor shards, experts and data replicas.
  struct outbox {
    std::vector<collective_message> to_shards;
    expert_exchange::messages to_experts;
    layer_sharing::messages to_replicas;
  };
  std::int64_t bytes_of(const mail::rows_to_expert& message) const {
    return experts_->bytes_of(message);
  }
  position host_of(int of_stage) const { return experts_->host_of(of_stage); }
  outbox take_outbox() { return std::exchange(outbox_, {}); }

  /// The action that is not at its end, if there is one.
  std::optional<action> unfinished() const;

  /// That action waits: its sample so far, without its times.
  sample pause();

  /// The action that has waited and can go on, once.
  std::optional<action> resumed();

  /// What follows from the end of an action.
  struct outcome {
    sample what; ///< Its times are still to be set.
    std::optional<activation> to_next;
    std::optional<gradient> to_previous;
    std::optional<action> arrived; ///< Of the last stage's forward: its own backward.
    std::optional<mail::microbatch_loss> loss;
    std::vector<mail::expert_load> loads;
  };

  /// \throws std::runtime_error if a loss is not finite
  outcome end(const action& a);

  /// The update under way, if there is one.
  std::optional<action> updating() const { return update_; }

  /// What the optimizer shard is asked to do.
  mail::update_request begin_update(const action& a);

  /// The buckets of gradients that it is to hear of now: all, if it waits for them and
  /// no backward has told of them.
  std::vector<mail::bucket_ready>
  buckets_to_tell(const mail::update_request& request) const;

  /// Bytes of the gradients of each bucket, as they travel.
  std::vector<std::int64_t> gradient_bytes() const;

  /// The sample of the update under way, without its times.
  sample update_sample() const;

  /// The next version is there. Returns the forwards that waited for it.
  std::vector<action> end_update();

  /// Parameters for an evaluation, once they are what they were after a batch that is
  /// to be evaluated.
  std::optional<mail::snapshot> take_snapshot();

  mail::collected collect() const;

  /// What the last update made, and of what.
  mail::version_made last_update() const;

  mail::waiting_for explain() const;

private:
  action action_of(op what, int microbatch) const;
  std::optional<action> forward_if_possible(int microbatch);
  tensor_header header_for(int stage, int microbatch, int version) const;
  sample sample_of(const action& a, int version) const;
  void note_backward();
  mail::waiting_for explain_pause() const;
  bool completes_sum() const;
  pass_pieces<float> pieces_of(const action& a, int version, bool begins_sum,
                               bool ends_sum, bool by_layer);
  pass_pieces<float> simulated_pieces(op what, bool by_layer) const;
  bool ends_layer(std::size_t piece) const;
  void send(layer_sharing::messages all);
  meeting begin_collective(const pass_piece<float>& after);
  std::vector<int> buckets_of(const std::vector<int>& layers) const;

  std::shared_ptr<const run_plan> plan_;
  position where_;
  std::string name_;
  stage_ledger books_;
  std::shared_ptr<stage_tensors> tensors_;     // null in a simulation
  std::shared_ptr<expert_exchange> experts_;   // null without any
  std::vector<std::vector<int>> completed_by_; // buckets, by layer of the stage
  std::optional<shard_group> shards_;          // absent without other tensor shards
  std::optional<layer_sharing> sharing_; // absent where replicas hold whole layers
  outbox outbox_;
  std::vector<int> unversioned_; // forwards whose weights are not made yet
  /// The action under way.
  struct under_way {
    action what;
    double operations;
    bool tells; // of buckets
    pass_pieces<float> pieces;
    std::size_t next = 0; // piece
    double done = 0;      // share of its work
    bool waits = false;
    std::uint8_t ends_in = nothing; // what ended last: meetings
  };
  std::optional<under_way> under_way_;
  int sums_begun_ = 0; // backwards begun since the last update
  std::int64_t samples_summed_ = 0;
  std::int64_t samples_updated_ = 0; // in all updates
  int backwards_ended_ = 0;
  std::optional<action> update_;
  update_facts facts_;
  int snapshot_due_ = 0; // batches; 0: none is due
};

} // namespace troupe
