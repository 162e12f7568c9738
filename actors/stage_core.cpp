#include "actors/stage_core.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>

namespace troupe {

stage_core::stage_core(std::shared_ptr<const run_plan> plan, position where,
                       std::shared_ptr<stage_tensors> tensors)
  : plan_(std::move(plan)),
    where_(where),
    name_(plan_->name_of(where)),
    books_(plan_->sch, plan_->dims, where.hosted()),
    tensors_(std::move(tensors)) {
  if (plan_->tensor > 1)
    shards_.emplace(*plan_, where_, tensors_ ? &tensors_->to_shards() : nullptr);
}

action stage_core::action_of(op what, int microbatch) const {
  return {what, where_.replica, where_.stage, microbatch};
}

std::optional<action> stage_core::forward_if_possible(int microbatch) {
  if (tensors_ && !tensors_->has_inputs(microbatch))
    return {};
  if (books_.can_forward(microbatch))
    return action_of(op::forward, microbatch);
  unversioned_.push_back(microbatch);
  return {};
}

std::optional<action> stage_core::take(const activation& input) {
  if (tensors_)
    tensors_->put_input(input.header.microbatch, input.payload);
  return forward_if_possible(input.header.microbatch);
}

std::optional<action> stage_core::take(const labels& input) {
  tensors_->put_labels(input.header.microbatch, input.payload);
  return forward_if_possible(input.header.microbatch);
}

std::optional<action> stage_core::take(const gradient& input) {
  if (tensors_)
    tensors_->put_gradient(input.header.microbatch, input.payload);
  return action_of(op::backward, input.header.microbatch);
}

void stage_core::begin(const action& a) {
  const bool sums = a.what == op::backward || a.what == op::weight_gradient;
  const bool begins_sum = sums && sums_begun_++ == 0;
  const bool completes = plan_->data > 1 && sums && completes_sum();
  const int version = a.what == op::forward ? books_.begin_forward(a.microbatch)
                                            : books_.version_for_backward(a.microbatch);
  const auto samples = plan_->samples_of(where_.data, a.microbatch);
  double operations = 0;
  if (tensors_)
    operations = tensors_->operations(samples) * (a.what == op::backward ? 2 : 1);
  under_way_ = {a, operations, completes, pieces_of(a, version, begins_sum, completes)};
}

pass_pieces<float> stage_core::pieces_of(const action& a, int version, bool begins_sum,
                                         bool by_layer) {
  if (!tensors_)
    return simulated_pieces(a.what);
  const auto samples = plan_->samples_of(where_.data, a.microbatch);
  return a.what == op::forward ? tensors_->forward(a.microbatch, samples, version)
                               : tensors_->backward(a.what, a.microbatch, samples,
                                                    version, begins_sum, by_layer);
}

/// Equal pieces, after each of which shards sum something if there are several; the
/// last bucket's gradients are complete first.
pass_pieces<float> stage_core::simulated_pieces(op what) const {
  const bool sums = what == op::backward || what == op::weight_gradient;
  const int joint =
    plan_->tensor > 1 && what != op::weight_gradient ? plan_->link.sums : 0;
  const int buckets = sums && plan_->data > 1 ? plan_->link.buckets : 0;
  const int count = joint > 0 ? joint : std::max(buckets, 1);
  pass_pieces<float> result(static_cast<std::size_t>(count));
  int told = 0;
  for (int i = 0; i < count; ++i) {
    auto& piece = result[static_cast<std::size_t>(i)];
    piece.share = 1.0 / count;
    if (joint > 0) // at least a value to each, so that messages take their latency
      piece.then = {
        shard_collective<float>::kind::sum, nullptr,
        std::max<std::int64_t>(std::llround(plan_->link.sum_bytes / sizeof(float)),
                               plan_->tensor)};
    for (; told < std::int64_t{buckets} * (i + 1) / count; ++told)
      piece.completes.push_back(buckets - 1 - told);
  }
  if (joint > 0)
    result.emplace_back().share = 0; // that waits for the last sum
  return result;
}

work stage_core::next_work(const tell_bucket& tell) {
  auto& now = *under_way_;
  work result{.kind = static_cast<int>(now.what.what),
              .stage = now.what.stage,
              .operations = now.operations,
              .begun = now.done};
  const auto gradients =
    tensors_ && now.tells
      ? tensors_->gradients()
      : std::vector<buffer>(static_cast<std::size_t>(plan_->link.buckets));
  for (bool goes_on = true; goes_on && now.next < now.pieces.size(); ++now.next) {
    auto& piece = now.pieces[now.next];
    goes_on = piece.then.what == shard_collective<float>::kind::none;
    work_part part{piece.share, std::move(piece.run), {}};
    if (now.tells && !piece.completes.empty())
      part.over = [tell, gradients, replica = where_.replica,
                   buckets = std::move(piece.completes)] {
        for (const int b : buckets)
          tell({replica, b, gradients[static_cast<std::size_t>(b)]});
      };
    result.parts.push_back(std::move(part));
  }
  now.done = result.done();
  return result;
}

std::vector<collective_message> stage_core::join_shards() {
  const auto& now = *under_way_;
  const auto& what = now.pieces[now.next - 1].then;
  if (what.what == shard_collective<float>::kind::none)
    return {};
  return shards_->begin(what);
}

std::vector<collective_message> stage_core::take(const collective_message& message) {
  return shards_->take(message);
}

std::optional<action> stage_core::unfinished() const {
  if (!under_way_ || under_way_->next == under_way_->pieces.size())
    return {};
  return under_way_->what;
}

sample stage_core::part_sample() const {
  const auto& a = under_way_->what;
  auto result = sample_of(a, books_.version_for_backward(a.microbatch));
  result.part = true;
  return result;
}

/// Whether the gradients of the update to come are complete with this.
bool stage_core::completes_sum() const {
  const int replicas = replicas_of(plan_->sch.where);
  const int size = update_size(plan_->sch, plan_->dims) / replicas;
  const int left = microbatches_of_replica(plan_->sch, plan_->dims) - backwards_ended_;
  return sums_begun_ == size || left == 1;
}

tensor_header stage_core::header_for(int stage, int microbatch, int version) const {
  std::int64_t values = 0;
  if (plan_->work) {
    const auto boundary = static_cast<std::size_t>(std::max(stage, where_.stage));
    const auto first = static_cast<std::size_t>(plan_->work->first_layers[boundary]);
    values = plan_->work->whole.layers[first]->input();
  }
  return {.step = microbatch / plan_->dims.microbatches,
          .microbatch = microbatch,
          .replica = plan_->replica_at(where_),
          .stage = stage,
          .samples = plan_->samples_of(where_.data, microbatch),
          .values = values,
          .version = version};
}

sample stage_core::sample_of(const action& a, int version) const {
  return {.what = a,
          .start = 0,
          .end = 0,
          .version = version,
          .versions_alive = books_.versions_alive(),
          .part = false,
          .gradients = 0,
          .stalest = 0,
          .staleness = 0};
}

stage_core::outcome stage_core::end(const action& a) {
  outcome result{};
  under_way_.reset();
  const int version = books_.version_for_backward(a.microbatch);
  if (a.what == op::forward) {
    auto payload = tensors_ ? tensors_->end_forward(a.microbatch) : buffer{};
    if (!is_last())
      result.to_next =
        activation{header_for(a.stage + 1, a.microbatch, version), std::move(payload)};
    else
      result.arrived = action_of(op::backward, a.microbatch);
    if (is_last() && tensors_ && plan_->speaks(where_)) {
      result.loss = {plan_->microbatch_of_all(where_.data, a.microbatch),
                     plan_->samples_of(where_.data, a.microbatch),
                     tensors_->loss_of(a.microbatch)};
      if (!std::isfinite(result.loss->sum.loss)) {
        std::ostringstream why;
        why << "the loss of microbatch " << result.loss->microbatch
            << " is not finite (" << result.loss->sum.loss << ") on weight version "
            << version << "; a lower learning rate or clipping may help";
        throw std::runtime_error(why.str());
      }
    }
  } else {
    auto payload = tensors_ ? tensors_->end_backward(a.what, a.microbatch) : buffer{};
    if (a.what != op::weight_gradient && !is_first())
      result.to_previous =
        gradient{header_for(a.stage - 1, a.microbatch, version), std::move(payload)};
    if (a.what != op::input_gradient) {
      books_.end_backward(a.microbatch);
      for (int d = 0; d < plan_->data; ++d) // they all sum the same microbatches
        samples_summed_ += plan_->samples_of(d, a.microbatch);
      note_backward();
    }
  }
  result.what = sample_of(a, version);
  return result;
}

/// Notes when the parameters are what an evaluation wants, or will be with the update
/// that follows.
void stage_core::note_backward() {
  ++backwards_ended_;
  const int share = plan_->dims.microbatches / replicas_of(plan_->sch.where);
  if (plan_->evaluate_every > 0 && plan_->replica_at(where_) == 0
      && backwards_ended_ % (std::int64_t{plan_->evaluate_every} * share) == 0)
    snapshot_due_ = backwards_ended_ / share;
}

mail::update_request stage_core::begin_update(const action& a) {
  mail::update_request result{.what = a, .samples = samples_summed_};
  if (tensors_)
    tensors_->keep_only(books_);
  facts_ = books_.begin_update();
  update_ = a;
  sums_begun_ = 0;
  samples_summed_ = 0;
  if (tensors_) {
    result.gradients = tensors_->gradients();
    if (!facts_.in_place)
      result.from = tensors_->parameters(facts_.from);
    result.to = tensors_->make_room(facts_);
    if (facts_.in_place)
      result.from = result.to;
  }
  return result;
}

sample stage_core::update_sample() const {
  auto result = sample_of(*update_, facts_.from + 1);
  result.gradients = facts_.gradients;
  result.stalest = facts_.stalest;
  result.staleness = facts_.staleness;
  return result;
}

std::vector<action> stage_core::end_update() {
  update_.reset();
  books_.end_update();
  std::vector<action> released;
  std::erase_if(unversioned_, [&](int microbatch) {
    if (!books_.can_forward(microbatch))
      return false;
    released.push_back(action_of(op::forward, microbatch));
    return true;
  });
  return released;
}

std::optional<mail::snapshot> stage_core::take_snapshot() {
  if (snapshot_due_ == 0 || update_)
    return {};
  return mail::snapshot{std::exchange(snapshot_due_, 0), where_,
                        tensors_->copy(books_.newest())};
}

mail::collected stage_core::collect() const {
  mail::collected result{where_, {}, {}};
  if (tensors_) {
    // An update that has begun and was not made has only room for the next version.
    const bool unmade = update_ && !facts_.in_place;
    result.parameters = tensors_->parameters(unmade ? facts_.from : books_.newest());
    result.gradients = tensors_->gradients();
  }
  return result;
}

mail::waiting_for stage_core::explain() const {
  const auto neighbour = [&](int stage) {
    return plan_->name_of({where_.data, where_.replica, stage, where_.tensor});
  };
  if (waits_for_shards())
    if (const auto other = shards_->waits_for())
      return {name_, "its part of " + to_string(under_way_->what),
              plan_->name_of({where_.data, where_.replica, where_.stage, *other})};
  if (update_)
    return {name_, "its update to be made", plan_->optimizer_of(where_)};
  if (books_.held() > 0 && !is_last())
    return {name_, "the gradient of microbatch " + std::to_string(books_.oldest_held()),
            neighbour(where_.stage + 1)};
  if (backwards_ended_ == microbatches_of_replica(plan_->sch, plan_->dims))
    return {name_, "", ""};
  if (books_.held() > 0)
    return {name_, "leave to run its backward", ""};
  return {name_, "an activation",
          is_first() ? "data_source" : neighbour(where_.stage - 1)};
}

} // namespace troupe
