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
  // nop
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

work stage_core::begin(const action& a, const tell_bucket& tell) {
  work result{.kind = static_cast<int>(a.what), .stage = a.stage};
  const bool sums = a.what == op::backward || a.what == op::weight_gradient;
  const bool begins_sum = sums && sums_begun_++ == 0;
  const bool completes = plan_->data > 1 && sums && completes_sum();
  const int version = a.what == op::forward ? books_.begin_forward(a.microbatch)
                                            : books_.version_for_backward(a.microbatch);
  const auto samples = plan_->samples_of(where_.data, a.microbatch);
  if (tensors_)
    result.operations =
      tensors_->operations(samples) * (a.what == op::backward ? 2 : 1);
  if (tensors_ && completes && a.what == op::backward)
    for (auto& layer :
         tensors_->backward_by_layer(a.microbatch, samples, version, begins_sum))
      result.parts.push_back({.share = 0, .run = std::move(layer), .over = {}});
  else if (tensors_ && a.what == op::forward)
    result.run = tensors_->forward(a.microbatch, samples, version);
  else if (tensors_)
    result.run = tensors_->backward(a.what, a.microbatch, samples, version, begins_sum);
  if (completes)
    tell_buckets(result, tell);
  return result;
}

/// Whether the gradients of the update to come are complete with this.
bool stage_core::completes_sum() const {
  const int replicas = replicas_of(plan_->sch.where);
  const int size = update_size(plan_->sch, plan_->dims) / replicas;
  const int left = microbatches_of_replica(plan_->sch, plan_->dims) - backwards_ended_;
  return sums_begun_ == size || left == 1;
}

/// The last layer's bucket is complete first. A weight gradient that is an action of
/// its own completes them all in its end.
void stage_core::tell_buckets(work& of, const tell_bucket& tell) {
  const auto gradients =
    tensors_ ? tensors_->gradients()
             : std::vector<buffer>(static_cast<std::size_t>(plan_->link.buckets));
  auto shares =
    std::vector(gradients.size(), 1.0 / static_cast<double>(gradients.size()));
  if (!of.parts.empty()) {
    shares = tensors_->shares();
  } else if (of.run) {
    of.parts.push_back({.share = 1, .run = std::exchange(of.run, {}), .over = {}});
    of.parts.resize(gradients.size());
    std::ranges::fill(shares, 0.0);
    shares.back() = 1;
  }
  of.parts.resize(gradients.size());
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const auto bucket = gradients.size() - 1 - i;
    of.parts[i].share = shares[bucket];
    of.parts[i].over =
      [tell, ready = mail::bucket_ready{where_.replica, static_cast<int>(bucket),
                                        gradients[bucket]}] { tell(ready); };
  }
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
          .gradients = 0,
          .stalest = 0,
          .staleness = 0};
}

stage_core::outcome stage_core::end(const action& a) {
  outcome result{};
  const int version = books_.version_for_backward(a.microbatch);
  if (a.what == op::forward) {
    auto payload = tensors_ ? tensors_->end_forward(a.microbatch) : buffer{};
    if (!is_last())
      result.to_next =
        activation{header_for(a.stage + 1, a.microbatch, version), std::move(payload)};
    else
      result.arrived = action_of(op::backward, a.microbatch);
    if (is_last() && tensors_) {
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
  return mail::snapshot{std::exchange(snapshot_due_, 0), where_.stage,
                        tensors_->copy(books_.newest())};
}

mail::collected stage_core::collect() const {
  mail::collected result{plan_->replica_at(where_), where_.stage, {}, {}};
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
    return plan_->name_of({where_.data, where_.replica, stage});
  };
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
