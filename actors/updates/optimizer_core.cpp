#include "actors/updates/optimizer_core.hpp"

#include "actors/plan/costs.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace troupe {

namespace {

/// Adds the first `values` of one buffer to another's.
void add(const buffer& from, std::int64_t values, const buffer& to) {
  const auto* in = from.data();
  auto* out = to.data();
  for (std::int64_t i = 0; i < values; ++i)
    out[i] += in[i];
}

} // namespace

optimizer_core::optimizer_core(const run_plan& plan, position where,
                               optimizer_memory memory)
  : where_(where),
    share_(plan.share_of(where)),
    has_gradients_(plan.extent_of(shared_out::gradients)),
    computes_(plan.work.has_value()),
    has_servers_(plan.updates_are_by(update_by::servers)),
    clip_(plan.work ? plan.work->optimizer.clip : 0),
    scope_(plan.work ? plan.work->optimizer.scope : clip_scope::stage),
    tells_all_(where.tensor == 0 && where.data % plan.expert == 0),
    state_(std::move(memory.state)),
    shared_(std::move(memory.parameters)),
    parts_(static_cast<std::size_t>(plan.directions())) {
  if (plan.sums_at_update())
    sum_.emplace(plan, where, exchange_step::sum, std::move(memory.sums));
  if (plan.gathers_at_update())
    gather_.emplace(plan, where, exchange_step::gather, std::move(memory.gathers));
  if (has_servers_)
    for (int d = 0; d < plan.data; ++d) {
      auto server = where;
      server.data = d;
      push_bytes_.push_back(plan.state_values_of(server) * std::int64_t{sizeof(float)});
    }
  ready_.resize(plan.tells_buckets() ? plan.buckets_of(where).size() : 0);
  for (const auto values : plan.buckets_of(where))
    version_bytes_ +=
      plan.held_of(shared_out::parameters, where, values) * std::int64_t{sizeof(float)};
  if (!plan.work)
    return;
  if (clip_ > 0) {
    norm_group_ = plan.norm_group(where);
    clipped_ = parts_of(plan.layers_of(where), share_);
  }
  gathered_.resize(norm_group_.size());
  for (const auto values : plan.buckets_of(where)) {
    gradients_.push_back(plan.held_of(shared_out::gradients, where, values));
    parameters_.push_back(plan.held_of(shared_out::parameters, where, values));
    operations_ += update_operations(share_.end(values) - share_.begin(values));
  }
}

std::vector<collective_message> optimizer_core::take(const mail::bucket_ready& part) {
  const auto b = static_cast<std::size_t>(part.bucket);
  auto& bucket = ready_[b];
  bucket.of.resize(parts_.size());
  bucket.of[static_cast<std::size_t>(part.replica)] = part.gradients;
  if (++bucket.count < static_cast<int>(parts_.size()))
    return {};
  const auto all = std::exchange(bucket, {}).of;
  ++complete_buckets_;
  if (!sum_) // they are added when the update is made
    return {};
  if (!state_)
    return sum_->begin(part.bucket, nullptr);
  for (std::size_t r = 1; r < all.size(); ++r)
    add(all[r], gradients_[b], all.front());
  return sum_->begin(part.bucket, all.front().data());
}

std::vector<collective_message> optimizer_core::take(const collective_message& part) {
  return sums(part) ? sum_->take(part) : gather_->take(part);
}

void optimizer_core::take(const mail::update_request& part) {
  parts_[static_cast<std::size_t>(part.what.replica)] = part;
}

bool optimizer_core::has_all_parts() const {
  return std::ranges::all_of(parts_, [](const auto& p) { return p.has_value(); });
}

bool optimizer_core::complete() const {
  return has_all_parts() && complete_buckets_ == ready_.size()
         && (!sum_ || sum_->done());
}

std::string optimizer_core::missing() const {
  for (std::size_t r = 0; r < parts_.size(); ++r)
    if (!parts_[r])
      return "the gradients of replica " + std::to_string(r);
  for (const auto& bucket : ready_)
    for (std::size_t r = 0; r < bucket.of.size(); ++r)
      if (bucket.count > 0 && !bucket.of[r])
        return "the gradients of replica " + std::to_string(r) + " to arrive";
  for (const auto* step : {&sum_, &gather_})
    if (*step)
      if (const auto other = (*step)->waits_for())
        return std::string{step == &sum_ ? "the gradients" : "the parameters"}
               + " of data replica " + std::to_string(*other);
  if (!servers_.empty())
    return "its share of the new version";
  return {};
}

std::vector<double> optimizer_core::squares(bool shards_only) const {
  return squares_of(clipped_, readable(parts_.front()->gradients), shards_only,
                    has_gradients_);
}

bool optimizer_core::needs_norm() const {
  return norm_group_.size() > 1
         || (clip_ > 0 && (has_servers_ || scope_ == clip_scope::network));
}

// The sum over replicas is in the first one's buffers, and its samples count for all.
// An exchange has added the buffers already.
void optimizer_core::add_replicas() {
  if (std::exchange(added_, true))
    return;
  auto& sum = *parts_.front();
  for (std::size_t r = 1; r < parts_.size(); ++r) {
    sum.samples += parts_[r]->samples;
    for (std::size_t b = 0; b < gradients_.size() && !sum_; ++b)
      add(parts_[r]->gradients[b], gradients_[b], sum.gradients[b]);
  }
}

work optimizer_core::measure() {
  work result{.kind = op_count, .stage = where_.stage}; // no op of its own
  result.run = [this] {
    add_replicas();
    if (clip_ > 0)
      squares_ = squares(!tells_all_);
  };
  return result;
}

mail::norm_part optimizer_core::norm() const {
  return {where_, parts_.front()->samples, squares_};
}

mail::push optimizer_core::begin_push() {
  const auto& sum = *parts_.front();
  made_ = true;
  servers_.resize(push_bytes_.size());
  std::iota(servers_.begin(), servers_.end(), 0);
  return {where_.data, sum.samples, factor_, sum.gradients, sum.to};
}

work optimizer_core::apply(int replica) {
  work result{.kind = static_cast<int>(op::update), .stage = where_.stage};
  if ((gathering_ || has_servers_) && replica == 0)
    result.kind = op_count; // it has run already
  made_ = true;
  if ((!computes_ && !shared_) || result.kind == op_count)
    return result;
  result.operations = operations_;
  const auto& part = *parts_[static_cast<std::size_t>(replica)];
  if (replica > 0) {
    const auto& made = *parts_.front();
    result.run = [this, &part, &made] {
      for (std::size_t b = 0; b < parameters_.size(); ++b)
        std::copy_n(made.to[b].data(), parameters_[b], part.to[b].data());
    };
    return result;
  }
  result.run = [this, &part] {
    add_replicas();
    const auto& sum = *parts_.front();
    double factor = factor_;
    if (clip_ > 0 && !needs_norm()) {
      const auto parts = squares(false);
      const double norm = std::sqrt(std::accumulate(parts.begin(), parts.end(), 0.0));
      factor = clip_factor(clip_, norm / static_cast<double>(sum.samples));
    }
    if (shared_) {
      shared_->update(where_.data, sum.samples, factor, sum.gradients, state_.get());
      return shared_->read(where_.data, part.to);
    }
    state_->update(sum.samples, factor, readable(sum.gradients), readable(part.from),
                   writable(part.to));
  };
  return result;
}

std::vector<collective_message> optimizer_core::begin_gather() {
  std::vector<collective_message> out;
  if (!gather_ || std::exchange(gathering_, true))
    return out;
  for (int b = 0; b < gather_->buckets(); ++b) {
    auto* const to =
      state_ ? parts_.front()->to[static_cast<std::size_t>(b)].data() : nullptr;
    for (auto& message : gather_->begin(b, to))
      out.push_back(std::move(message));
  }
  return out;
}

void optimizer_core::applied() {
  if (++applied_ < static_cast<int>(parts_.size()))
    return;
  std::ranges::fill(parts_, std::nullopt);
  added_ = false;
  made_ = false;
  complete_buckets_ = 0;
  applied_ = 0;
  factor_ = 1;
  gathering_ = false;
  for (auto* step : {&sum_, &gather_})
    if (*step)
      (*step)->next_update();
}

std::optional<double> optimizer_core::gather(const mail::norm_part& part) {
  const auto place = std::ranges::find(norm_group_, part.of) - norm_group_.begin();
  gathered_[static_cast<std::size_t>(place)] = part;
  if (!std::ranges::all_of(gathered_, [](const auto& p) { return p.has_value(); }))
    return {};
  double sum = 0;
  for (const auto& p : gathered_)
    for (const double squares : p->squares)
      sum += squares;
  const auto samples = static_cast<double>(gathered_.front()->samples);
  std::ranges::fill(gathered_, std::nullopt);
  return clip_factor(clip_, std::sqrt(sum) / samples);
}

} // namespace troupe
