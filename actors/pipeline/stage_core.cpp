#include "actors/pipeline/stage_core.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>

namespace troupe {

stage_core::stage_core(std::shared_ptr<const run_plan> plan, position where,
                       std::shared_ptr<stage_tensors> tensors,
                       std::shared_ptr<expert_exchange> experts)
  : plan_(std::move(plan)),
    where_(where),
    name_(plan_->name_of(where)),
    books_(plan_->sch, plan_->dims, where.hosted()),
    tensors_(std::move(tensors)),
    experts_(std::move(experts)) {
  if (plan_->tensor > 1)
    shards_.emplace(*plan_, where_, tensors_ ? &tensors_->to_shards() : nullptr);
  if (plan_->shares_out(shared_out::gradients))
    sharing_.emplace(*plan_, where_, tensors_.get());
  if (!tensors_)
    return;
  const auto buckets = plan_->layer_buckets(where_);
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    if (buckets[b].expert < 0)
      completed_by_.emplace_back();
    completed_by_.back().push_back(static_cast<int>(b));
  }
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
  const bool ends_sum = sums && completes_sum();
  const bool tells = plan_->tells_at_once() && ends_sum;
  const bool shares = sharing_ && sharing_->concerns(a.what);
  const int version = a.what == op::forward ? books_.begin_forward(a.microbatch)
                                            : books_.version_for_backward(a.microbatch);
  const auto samples = plan_->samples_of(where_.data, a.microbatch);
  double operations = 0;
  if (tensors_)
    operations = tensors_->operations(samples) * (a.what == op::backward ? 2 : 1);
  auto pieces = pieces_of(a, version, begins_sum, ends_sum, tells || shares);
  if (experts_) { // the rest of the action's work is theirs
    const double own = 1 - experts_->share();
    operations /= own;
    for (auto& piece : pieces)
      piece.share *= own;
  }
  if (shares) {
    std::vector<int> layers;
    for (const auto& piece : pieces)
      if (layers.empty() || layers.back() != piece.layer)
        layers.push_back(piece.layer);
    if (sharing_->sums(a.what))
      pieces.emplace_back().share = 0; // that waits for the last sum
    send(sharing_->begin(a.what, version, begins_sum, std::move(layers)));
  }
  under_way_ = {a, operations, tells, std::move(pieces)};
}

pass_pieces<float> stage_core::pieces_of(const action& a, int version, bool begins_sum,
                                         bool ends_sum, bool by_layer) {
  if (!tensors_)
    return simulated_pieces(a.what, by_layer);
  const auto samples =
    plan_->batches().range_of(plan_->microbatch_of_all(where_.data, a.microbatch));
  return a.what == op::forward
           ? tensors_->forward(a.microbatch, samples, version, by_layer)
           : tensors_->backward(a.what, a.microbatch, samples, version, begins_sum,
                                ends_sum, by_layer);
}

/// Equal layers, a bucket each, and equal pieces between which shards sum something, if
/// there are several: by sequence they gather before a piece and scatter behind it.
/// Behind the first piece experts are asked. A backward begins with the last layer.
pass_pieces<float> stage_core::simulated_pieces(op what, bool by_layer) const {
  using kind = shard_collective<float>::kind;
  const bool reads = what != op::weight_gradient; // what others may have to make first
  const bool meets = plan_->tensor > 1 && reads;
  const bool asks_experts = experts_ && reads;
  const bool by_sequence = plan_->sequence_parallel;
  const int sums = meets ? plan_->sizes.sums : asks_experts ? 2 : 1;
  const int layers = by_layer ? plan_->sizes.buckets : 1;
  const int count = sums * layers;
  // At least a value to each, so that messages take their latency.
  const auto values = std::max<std::int64_t>(
    std::llround(plan_->sizes.sum / sizeof(float)), plan_->tensor);
  const auto rows = std::max<std::int64_t>(
    std::llround(plan_->sizes.experts / sizeof(float)), plan_->expert);
  pass_pieces<float> result;
  for (int i = 0; i < count; ++i) {
    const int layer = what == op::forward ? i / sums : layers - 1 - i / sums;
    if (meets && by_sequence && i % layers == 0) {
      auto& before = result.emplace_back();
      before.layer = layer;
      before.share = 0;
      // A backward gathers the norm's output again, beside its gradient.
      before.then = {kind::gather, nullptr, what == op::forward ? values : 2 * values};
    }
    auto& piece = result.emplace_back();
    piece.share = 1.0 / count;
    piece.layer = layer;
    if (meets && (i + 1) % layers == 0)
      piece.then = {by_sequence ? kind::scatter : kind::sum, nullptr, values};
    if (asks_experts && i == 0)
      piece.then = {kind::experts, nullptr, rows};
    if ((i + 1) % sums == 0)
      piece.completes = {layer};
  }
  if (result.back().then.what != shard_collective<float>::kind::none) {
    const int layer = result.back().layer;
    result.push_back({.layer = layer, .share = 0}); // that waits for the last sum
  }
  return result;
}

bool stage_core::can_go_on() const {
  if ((shards_ && !shards_->done()) || (experts_ && !experts_->done()))
    return false;
  const auto& now = *under_way_;
  return !sharing_ || !sharing_->concerns(now.what.what)
         || sharing_->ready(now.pieces[now.next].layer);
}

/// Whether replicas have something to do after a piece, before the next begins.
bool stage_core::ends_layer(std::size_t piece) const {
  const auto& now = *under_way_;
  return sharing_ && sharing_->concerns(now.what.what) && now.pieces[piece].layer >= 0
         && (piece + 1 == now.pieces.size()
             || now.pieces[piece + 1].layer != now.pieces[piece].layer);
}

work stage_core::next_work(const tell_bucket& tell) {
  auto& now = *under_way_;
  work result{.kind = static_cast<int>(now.what.what),
              .stage = now.what.stage,
              .microbatch = now.what.microbatch,
              .operations = now.operations,
              .begun = now.done};
  if (now.pieces.size() == 1 && !now.tells && !experts_) { // nobody waits on the way
    result.run = std::move(now.pieces[now.next++].run);
    return result;
  }
  const auto layer = now.pieces[now.next].layer;
  if (sharing_ && sharing_->concerns(now.what.what) && layer >= 0
      && (now.next == 0 || ends_layer(now.next - 1)))
    send(sharing_->enter(layer));
  std::vector<buffer> gradients; // of which somebody hears
  if (now.tells && tensors_)
    gradients = tensors_->gradients();
  else if (now.tells)
    gradients.resize(static_cast<std::size_t>(plan_->sizes.buckets));
  for (bool goes_on = true; goes_on && now.next < now.pieces.size(); ++now.next) {
    auto& piece = now.pieces[now.next];
    goes_on =
      piece.then.what == shard_collective<float>::kind::none && !ends_layer(now.next);
    work_part part{piece.share, std::move(piece.run), {}};
    if (now.tells && !piece.completes.empty())
      part.over = [tell, gradients, replica = where_.replica,
                   buckets = buckets_of(piece.completes)] {
        for (const int b : buckets)
          tell({replica, b, gradients[static_cast<std::size_t>(b)]});
      };
    result.parts.push_back(std::move(part));
  }
  now.done = result.done();
  return result;
}

/// Returns the meeting that it begins.
meeting stage_core::begin_collective(const pass_piece<float>& after) {
  using kind = shard_collective<float>::kind;
  const auto& a = under_way_->what;
  const auto first =
    plan_->work ? plan_->work->first_layers[static_cast<std::size_t>(where_.stage)] : 0;
  if (after.then.what == kind::experts)
    outbox_.to_experts =
      experts_->begin(a, books_.version_for_backward(a.microbatch),
                      static_cast<std::size_t>(first + after.layer), after.then);
  if (after.then.what == kind::none)
    return nothing;
  if (after.then.what == kind::experts)
    return experts_asked;
  outbox_.to_shards = shards_->begin(after.then);
  return shards_meet;
}

/// The buckets whose gradients are complete with those of some layers: their own, and
/// those of their experts here.
std::vector<int> stage_core::buckets_of(const std::vector<int>& layers) const {
  if (!tensors_)
    return layers;
  std::vector<int> result;
  for (const int layer : layers)
    for (const int bucket : completed_by_[static_cast<std::size_t>(layer)])
      result.push_back(bucket);
  return result;
}

void stage_core::end_work() {
  auto& now = *under_way_;
  const auto last = now.next - 1;
  now.ends_in = begin_collective(now.pieces[last]);
  if (ends_layer(last)) {
    now.ends_in |= layer_ends;
    send(sharing_->leave(now.pieces[last].layer));
  }
}

void stage_core::send(layer_sharing::messages all) {
  for (auto& one : all)
    outbox_.to_replicas.push_back(std::move(one));
}

void stage_core::take(const collective_message& message) {
  outbox_.to_shards = shards_->take(message);
}

void stage_core::take(const mail::layer_message& message) {
  send(sharing_->take(message.what));
}

std::optional<action> stage_core::unfinished() const {
  if (!under_way_ || under_way_->next == under_way_->pieces.size())
    return {};
  return under_way_->what;
}

sample stage_core::pause() {
  under_way_->waits = true;
  const auto& a = under_way_->what;
  auto result = sample_of(a, books_.version_for_backward(a.microbatch));
  result.part = true;
  result.ends_in = std::exchange(under_way_->ends_in, nothing);
  return result;
}

std::optional<action> stage_core::resumed() {
  if (!under_way_ || !under_way_->waits || !can_go_on())
    return {};
  under_way_->waits = false;
  return under_way_->what;
}

/// Whether the gradients of the update to come are complete with this.
bool stage_core::completes_sum() const {
  const int replicas = plan_->directions();
  const int size = update_size(plan_->sch, plan_->dims) / replicas;
  const int left = microbatches_of_replica(plan_->sch, plan_->dims) - backwards_ended_;
  return sums_begun_ == size || left == 1;
}

tensor_header stage_core::header_for(int stage, int microbatch, int version) const {
  std::int64_t values = 0;
  if (plan_->work) {
    const auto boundary = static_cast<std::size_t>(std::max(stage, where_.stage));
    const auto first = static_cast<std::size_t>(plan_->work->first_layers[boundary]);
    values = plan_->network_of(where_).layers[first]->input();
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
    if (experts_)
      result.loads = experts_->take_loads();
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
            << version
            << (version == 0
                  ? ", which no update has made: look at the first weights and "
                    "the data"
                  : "; a lower learning rate or clipping may help");
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
        if (d == where_.data || plan_->updates_are_by(update_by::all))
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
  const int share = plan_->dims.microbatches / plan_->directions();
  if (plan_->evaluate_every > 0 && plan_->shows(where_)
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
  samples_updated_ += std::exchange(samples_summed_, 0);
  if (experts_)
    experts_->begin_update();
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

std::vector<mail::bucket_ready>
stage_core::buckets_to_tell(const mail::update_request& request) const {
  std::vector<mail::bucket_ready> result;
  if (!plan_->tells_buckets() || plan_->tells_at_once())
    return result;
  const auto count = plan_->buckets_of(where_).size();
  for (std::size_t b = 0; b < count; ++b)
    result.push_back({where_.replica, static_cast<int>(b),
                      tensors_ ? request.gradients[b] : buffer{}});
  return result;
}

std::vector<std::int64_t> stage_core::gradient_bytes() const {
  std::vector<std::int64_t> result;
  for (const auto values : plan_->buckets_of(where_))
    result.push_back(plan_->held_of(shared_out::gradients, where_, values)
                     * std::int64_t{sizeof(float)});
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
  if (update_)
    throw std::logic_error("its update " + std::to_string(books_.newest())
                           + " was not made");
  mail::collected result{where_, books_.newest(), samples_updated_, {}, {}};
  if (tensors_) {
    result.parameters = tensors_->parameters(books_.newest());
    result.gradients = tensors_->gradients();
  }
  return result;
}

mail::version_made stage_core::last_update() const {
  const auto buckets = plan_->buckets_of(where_);
  mail::version_made result{where_, books_.newest(), {}, {}};
  const auto copy = [&](shared_out what, const std::vector<buffer>& from,
                        std::vector<std::vector<float>>& to) {
    for (std::size_t b = 0; b < from.size(); ++b)
      to.emplace_back(from[b].data(),
                      from[b].data() + plan_->held_of(what, where_, buckets[b]));
  };
  copy(shared_out::parameters, tensors_->parameters(result.version), result.parameters);
  copy(shared_out::gradients, tensors_->gradients(), result.gradients);
  return result;
}

/// An action waits for other tensor shards, for an expert, or for data replicas.
mail::waiting_for stage_core::explain_pause() const {
  if (experts_ && !experts_->done())
    return {name_, "its rows of " + to_string(under_way_->what),
            plan_->name_of_expert(experts_->waits_for(),
                                  plan_->host_of(experts_->waits_for(), where_))};
  auto other = where_;
  if (shards_ && !shards_->done())
    other.tensor = shards_->waits_for().value_or(where_.tensor);
  else
    other.data = sharing_->waits_for().value_or(where_.data);
  return {name_, "its part of " + to_string(under_way_->what), plan_->name_of(other)};
}

mail::waiting_for stage_core::explain() const {
  const auto neighbour = [&](int stage) {
    return plan_->name_of({where_.data, where_.replica, stage, where_.tensor});
  };
  if (under_way_ && under_way_->waits)
    return explain_pause();
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
          is_first() ? plan_->source_of(where_) : neighbour(where_.stage - 1)};
}

} // namespace troupe
