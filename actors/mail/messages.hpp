#pragma once

#include "kernels/cross_entropy.hpp"
#include "messaging/collective_message.hpp"
#include "messaging/position.hpp"
#include "messaging/record.hpp"
#include "messaging/tensor_message.hpp"
#include "schedules/action.hpp"

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/typed_actor.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

namespace mail {

// -- between a rank's scheduler and its stages
// ------------------------------------------

/// Stage to scheduler: the inputs of an action are here.
struct arrived {
  action what;
};

/// Scheduler to stage: do it now.
struct run {
  action what;
};

/// Stage to scheduler: it has ended.
struct done {
  sample what;
};

/// Stage to scheduler: an action waits for others; it will arrive again. The sample
/// says what it took so far.
struct paused {
  sample what;
};

/// Device to stage, or to optimizer_shard: the work enqueued for an action has ended.
struct ended {
  action what;
  nanoseconds start;
  nanoseconds end;
};

// -- between data_source and stages
// -----------------------------------------------------

/// First stage to data_source: one more microbatch.
struct demand {};

// -- between stages and optimizer shards
// ------------------------------------------------

/// Stage to shard, where data replicas or directions sum: a layer's gradients of this
/// update are complete.
struct bucket_ready {
  int replica; ///< Within the data replica.
  int bucket;
  buffer gradients; ///< Empty where nothing is computed.
};

/// Stage to shard: its gradients, and where the next version belongs. The handles keep
/// the buffers; all are empty where nothing is computed.
struct update_request {
  action what;
  std::int64_t samples; ///< Summed in the gradients.
  std::vector<buffer> gradients;
  std::vector<buffer> from;
  std::vector<buffer> to; ///< May be `from`.
};

/// Shard to stage: others are still missing. What it took so far, if anything, and what
/// that ended in.
struct update_waits {
  nanoseconds start;
  nanoseconds end;
  meeting ends_in;
};

/// Shard to stage: all are there.
struct update_ready {};

/// Stage to shard, once its scheduler has granted the update again.
struct update_go {
  int replica;
};

/// Shard to stage: the next version is written.
struct updated {
  nanoseconds start;
  nanoseconds end;
  meeting ends_in;
};

/// Shard to itself: the new version has arrived at the rank of a replica.
struct version_there {
  int replica;
};

/// Shard to the first of those whose gradients one norm covers: sums of squares of the
/// summed gradients, a parameter each, in the model's order.
struct norm_part {
  position of;
  std::int64_t samples;
  std::vector<double> squares;
};

/// And from it to all of them: what multiplies the gradients of this update.
struct clip_by {
  double factor;
};

// -- between optimizer shards and parameter servers
// -----------------------------------------------

/// Optimizer shard to server: the gradients of a data replica's update, of which the
/// server applies its share, and where that share of the next version belongs.
struct push {
  int data;
  std::int64_t samples; ///< Summed in the gradients.
  double factor;        ///< Of clipping.
  std::vector<buffer> gradients;
  std::vector<buffer> to;
};

/// Server to optimizer shard: its share is there.
struct pulled {
  int server;
};

// -- to the recorder
// --------------------------------------------------------------------

/// A rank's next samples, in order, if they are kept.
struct samples {
  int rank;
  std::vector<sample> what;
};

/// A rank's sums so far.
struct sums {
  int rank;
  rank_sums what;
};

/// The last stage's loss of a microbatch.
struct microbatch_loss {
  int microbatch;
  std::int64_t samples;
  loss_sum sum;
};

/// Stage to recorder, if versions are kept: copies of what an update made, and of the
/// gradients that it was of.
struct version_made {
  position where;
  int version;
  std::vector<std::vector<float>> parameters;
  std::vector<std::vector<float>> gradients;
};

// -- between data replicas of a stage
// ------------------------------------------------------------

/// A message of a collective over the parameters or gradients of one layer.
struct layer_message {
  collective_message what;
};

// -- between stages and experts
// ------------------------------------------------------------

/// What an expert computes a pass with; the stage that it stands with lends it.
struct expert_loan {
  buffer parameters;
  buffer gradients; ///< Of backwards.
  int version;
  bool begins_sum; ///< Its gradients are the first of an update.
};

/// Stage to expert: rows that were chosen for it. A backward's are gradients.
struct rows_to_expert {
  action what; ///< That waits for them: F, B or I.
  int source;  ///< Data replica, among those that share the experts out.
  std::int64_t rows;
  buffer payload;                  ///< Empty if there are none.
  std::optional<expert_loan> loan; ///< From the stage on the expert's own rank.
};

/// Expert to stage: what it made of them.
struct rows_from_expert {
  int expert; ///< Among those of the stage.
  buffer payload;
};

/// Expert to scheduler: all rows of a pass are here.
struct expert_arrived {
  int expert; ///< Among those of the rank.
};

/// Scheduler to expert: go on.
struct expert_run {};

/// Expert to scheduler: it has ended. Expert to itself likewise.
struct expert_done {
  sample what; ///< A part of its stage's action.
};

struct expert_ended {
  nanoseconds start;
  nanoseconds end;
};

/// Stage to recorder: how a microbatch's tokens fell to the experts of a layer.
struct expert_load {
  int microbatch;
  std::size_t of_layer;
  std::vector<std::int64_t> rows; ///< Of each expert.
  std::int64_t dropped;           ///< Choices that found their expert full.
};

// -- with the coordinator
// ---------------------------------------------------------------

/// Scheduler to coordinator: its rank has done all it had to do.
struct finished {
  int rank;
};

/// Coordinator to scheduler: grant nothing more, and say when nothing runs.
struct hold {};

/// Scheduler to coordinator.
struct held {
  int rank;
};

/// Coordinator to scheduler: go on; so many batches have been evaluated.
struct proceed {
  int evaluated;
};

/// Coordinator to scheduler: begin no further update, and say how far you are. A local
/// rule lets no further microbatch in.
struct stop {};

/// Scheduler to coordinator: updates that have begun, of its stage with most; under a
/// local rule the first stage's microbatches.
struct begun {
  int rank;
  int count;
};

/// Coordinator to scheduler: end after so many of them.
struct stop_after {
  int count;
};

/// Virtual clock to scheduler: all messages of this instant have been heard.
struct decide {};

/// Stage to coordinator: copies of its parameters after so many batches.
struct snapshot {
  int batches;
  position where;
  std::vector<buffer> parameters;
};

/// Coordinator to stage: hand over what you have in the end.
struct collect {};

/// Stage to coordinator: its newest parameters, and the gradients it summed last.
struct collected {
  position where;
  std::int64_t updates; ///< That made the parameters.
  std::int64_t samples; ///< That those cover.
  std::vector<buffer> parameters;
  std::vector<buffer> gradients;
};

/// Coordinator to everyone: what are you waiting for?
struct explain {};

/// The answer. Empty `what`: nothing.
struct waiting_for {
  std::string who;
  std::string what;
  std::string on; ///< Another actor's name, if there is one to blame.
};

} // namespace mail

// -- handles
// ----------------------------------------------------------------------------

using data_source_actor =
  caf::typed_actor<caf::reacts_to<mail::demand>, caf::reacts_to<mail::explain>>;

using scheduler_actor =
  caf::typed_actor<caf::reacts_to<mail::arrived>, caf::reacts_to<mail::done>,
                   caf::reacts_to<mail::paused>, caf::reacts_to<mail::decide>,
                   caf::reacts_to<mail::expert_arrived>,
                   caf::reacts_to<mail::expert_done>, caf::reacts_to<mail::hold>,
                   caf::reacts_to<mail::proceed>, caf::reacts_to<mail::stop>,
                   caf::reacts_to<mail::stop_after>, caf::reacts_to<mail::explain>,
                   caf::reacts_to<struct scheduler_peers>>;

using stage_actor = caf::typed_actor<
  caf::reacts_to<activation>, caf::reacts_to<labels>, caf::reacts_to<gradient>,
  caf::reacts_to<mail::run>, caf::reacts_to<mail::ended>,
  caf::reacts_to<mail::update_waits>, caf::reacts_to<mail::update_ready>,
  caf::reacts_to<mail::updated>, caf::reacts_to<collective_message>,
  caf::reacts_to<mail::layer_message>, caf::reacts_to<mail::rows_from_expert>,
  caf::reacts_to<mail::collect>, caf::reacts_to<mail::explain>,
  caf::reacts_to<struct stage_peers>>;

using expert_actor =
  caf::typed_actor<caf::reacts_to<mail::rows_to_expert>,
                   caf::reacts_to<mail::expert_run>, caf::reacts_to<mail::expert_ended>,
                   caf::reacts_to<mail::explain>, caf::reacts_to<struct expert_peers>>;

using optimizer_shard_actor = caf::typed_actor<
  caf::reacts_to<mail::bucket_ready>, caf::reacts_to<collective_message>,
  caf::reacts_to<mail::update_request>, caf::reacts_to<mail::update_go>,
  caf::reacts_to<mail::norm_part>, caf::reacts_to<mail::clip_by>,
  caf::reacts_to<mail::pulled>, caf::reacts_to<mail::version_there>,
  caf::reacts_to<mail::ended>, caf::reacts_to<mail::explain>,
  caf::reacts_to<struct optimizer_shard_peers>>;

using parameter_server_actor =
  caf::typed_actor<caf::reacts_to<mail::push>, caf::reacts_to<mail::ended>,
                   caf::reacts_to<mail::explain>,
                   caf::reacts_to<struct parameter_server_peers>>;

using recorder_actor =
  caf::typed_actor<caf::reacts_to<mail::samples>, caf::reacts_to<mail::sums>,
                   caf::reacts_to<mail::microbatch_loss>,
                   caf::reacts_to<mail::version_made>,
                   caf::reacts_to<mail::expert_load>>;

using coordinator_actor =
  caf::typed_actor<caf::reacts_to<mail::finished>, caf::reacts_to<mail::held>,
                   caf::reacts_to<mail::snapshot>, caf::reacts_to<mail::collected>,
                   caf::reacts_to<mail::waiting_for>,
                   caf::reacts_to<struct coordinator_peers>, caf::reacts_to<mail::hold>,
                   caf::reacts_to<mail::proceed>, caf::reacts_to<mail::stop>,
                   caf::reacts_to<mail::begun>, caf::reacts_to<mail::collect>,
                   caf::reacts_to<mail::explain>>;

// -- wiring: whom an actor may send to
// --------------------------------------------------

/// A list that all members of a group share; null if they are no group.
template <class Handle>
using group = std::shared_ptr<const std::vector<Handle>>;

struct scheduler_peers {
  std::vector<stage_actor> stages;   ///< In hosted_by's order.
  std::vector<expert_actor> experts; ///< Likewise, stage by stage.
  recorder_actor recorder;
  coordinator_actor coordinator;
};

struct stage_peers {
  data_source_actor data;            ///< For the first stage.
  stage_actor previous;              ///< For all but the first.
  stage_actor next;                  ///< For all but the last.
  group<stage_actor> shards;         ///< All tensor shards of the stage, if it is cut.
  group<stage_actor> others;         ///< It in all data replicas, if they share it out.
  std::vector<expert_actor> experts; ///< Of its layers, in the network's order.
  scheduler_actor scheduler;         ///< Of its rank.
  optimizer_shard_actor optimizer;
  recorder_actor recorder;
  coordinator_actor coordinator;
};

struct expert_peers {
  std::vector<stage_actor> sources; ///< Its stage, in the data replicas that it serves.
  scheduler_actor scheduler;        ///< Of its rank.
  coordinator_actor coordinator;
};

struct optimizer_shard_peers {
  std::vector<stage_actor> stages; ///< The replicas of its stage.
  /// Those whose gradients one norm covers: for the first all, for others the first.
  std::vector<optimizer_shard_actor> shards;
  group<optimizer_shard_actor> others;   ///< Of its stage in all data replicas.
  group<parameter_server_actor> servers; ///< Of its stage, a share each, if there are.
  coordinator_actor coordinator;
};

struct parameter_server_peers {
  group<optimizer_shard_actor> clients; ///< Of its stage in all data replicas.
  coordinator_actor coordinator;
};

struct coordinator_peers {
  std::vector<data_source_actor> data;
  std::vector<scheduler_actor> schedulers;
  std::vector<stage_actor> stages;
  std::vector<optimizer_shard_actor> shards;
  std::vector<expert_actor> experts;
  std::vector<parameter_server_actor> servers;
  recorder_actor recorder;
};

} // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::activation)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::labels)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::gradient)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::arrived)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::run)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::done)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::paused)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::ended)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::demand)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::collective_message)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::layer_message)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::bucket_ready)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::update_request)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::update_waits)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::update_ready)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::update_go)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::updated)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::version_there)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::norm_part)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::clip_by)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::push)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::pulled)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::samples)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::sums)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::microbatch_loss)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::version_made)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::rows_to_expert)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::rows_from_expert)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::expert_arrived)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::expert_run)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::expert_done)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::expert_ended)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::expert_load)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::finished)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::hold)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::held)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::proceed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::stop)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::begun)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::stop_after)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::decide)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::snapshot)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::collect)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::collected)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::explain)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::mail::waiting_for)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::scheduler_peers)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::stage_peers)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::expert_peers)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::optimizer_shard_peers)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::parameter_server_peers)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::coordinator_peers)
