#include "models/plain_loop.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace troupe {

namespace {

using buckets = std::vector<tensor_memory>;

std::vector<std::vector<float>> copy_of(const buckets& from) {
  std::vector<std::vector<float>> result;
  for (const auto& b : from)
    result.emplace_back(b.data(), b.data() + b.values());
  return result;
}

/// A stage of the loop: a slice, its versions and its sums.
class plain_stage {
public:
  plain_stage(const plain_plan& plan, slice<float> layers, std::size_t first_layer,
              memory_account& account)
    : layers_(std::move(layers)), account_(account), optimizer_(make_optimizer(plan)) {
    auto& initial = versions_[0] = new_buckets();
    for (std::size_t i = 0; i < initial.size(); ++i)
      plan.weights(first_layer + i, initial[i].data());
    for (int r = 0; r < plan.replicas; ++r)
      sums_.push_back(new_buckets());
    const auto sizes = layers_.sizes(plan.batches.largest());
    output_ = {sizes.output, account};
    input_gradient_ = {layers_.is_first() ? 0 : sizes.input, account};
    stash_ = {sizes.stash, account};
    scratch_ = {sizes.scratch, account};
  }

  const slice<float>& layers() const { return layers_; }
  float* output() const { return output_.data(); }
  float* input_gradient() const { return input_gradient_.data(); }
  int newest() const { return versions_.rbegin()->first; }

  /// A pass of this stage on a version of its weights.
  pass<float> pass_on(int version, int replica, bool first_of_sum) const {
    pass<float> p;
    p.output = output_.data();
    p.stash = stash_.data();
    p.input_gradient = input_gradient_.data();
    p.parameters = readable(versions_.at(version));
    p.gradients = writable(sums_[static_cast<std::size_t>(replica)]);
    p.beta = first_of_sum ? 0.0F : 1.0F;
    p.scratch = scratch_.data();
    return p;
  }

  /// Adds the replicas' sums, in order, into the first.
  void add_replicas() {
    for (std::size_t r = 1; r < sums_.size(); ++r)
      for (std::size_t b = 0; b < sums_[r].size(); ++b)
        for (std::int64_t i = 0; i < sums_[r][b].values(); ++i)
          sums_[0][b].data()[i] += sums_[r][b].data()[i];
  }

  std::vector<double> squares() const { return optimizer_.squares(readable(sums_[0])); }

  /// Makes the next version; of those before, keeps from `oldest_needed` on.
  void update(std::int64_t samples, double factor, int oldest_needed) {
    const int from = newest();
    if (from >= oldest_needed) {
      versions_[from + 1] = new_buckets();
      optimizer_.update(samples, factor, readable(sums_[0]), readable(versions_[from]),
                        writable(versions_[from + 1]));
    } else {
      auto in_place = versions_.extract(from);
      optimizer_.update(samples, factor, readable(sums_[0]),
                        readable(in_place.mapped()), writable(in_place.mapped()));
      in_place.key() = from + 1;
      versions_.insert(std::move(in_place));
    }
    versions_.erase(versions_.begin(),
                    versions_.lower_bound(std::min(oldest_needed, from + 1)));
  }

  void collect(trained& result) const {
    for (auto& bucket : copy_of(versions_.rbegin()->second))
      result.parameters.push_back(std::move(bucket));
    for (auto& bucket : copy_of(sums_[0]))
      result.gradients.push_back(std::move(bucket));
  }

private:
  buckets new_buckets() const {
    buckets result;
    for (const auto& l : layers_.layers())
      result.emplace_back(l->bucket(), account_);
    return result;
  }

  optimizer make_optimizer(const plain_plan& plan) const {
    std::vector<std::vector<parameter>> layout;
    std::vector<std::int64_t> values;
    for (const auto& l : layers_.layers()) {
      layout.push_back(l->parameters());
      values.push_back(l->bucket());
    }
    return {plan.optimizer, std::move(layout), values, plan.batches.batch * plan.steps,
            account_};
  }

  slice<float> layers_;
  memory_account& account_;
  optimizer optimizer_;
  std::map<int, buckets> versions_;
  std::vector<buckets> sums_; // a replica each
  tensor_memory output_, input_gradient_, stash_, scratch_;
};

class loop {
public:
  explicit loop(const plain_plan& plan)
    : plan_(plan),
      threads_(plan.threads),
      total_(plan.batches.microbatches * plan.steps),
      update_size_(plan.update_every > 0 ? plan.update_every
                                         : plan.batches.microbatches),
      replica_begins_(static_cast<std::size_t>(plan.replicas), true) {
    auto slices = slice<float>::cut_at(plan.whole, plan.first_layers, plan.threads);
    for (std::size_t s = 0; s < slices.size(); ++s)
      stages_.emplace_back(plan, std::move(slices[s]),
                           static_cast<std::size_t>(plan.first_layers[s]), account_);
    const auto largest = plan.batches.largest();
    input_ = {stages_.front().layers().sizes(largest).input, account_};
    labels_ = {stages_.back().layers().sizes(largest).labels, account_};
  }

  trained run() {
    for (int n = 0; n < total_; ++n) {
      train_on(n);
      if ((n + 1) % update_size_ == 0 || n + 1 == total_)
        update(n);
    }
    for (const auto& stage : stages_)
      stage.collect(result_);
    return std::move(result_);
  }

private:
  std::int32_t* tokens() const {
    return reinterpret_cast<std::int32_t*>(input_.data());
  }
  std::int32_t* labels() const {
    return reinterpret_cast<std::int32_t*>(labels_.data());
  }

  void read_samples(int microbatch) {
    const auto& first = stages_.front().layers();
    const auto input = first.layers().front()->input();
    for (std::int64_t i = 0; i < plan_.batches.samples_of(microbatch); ++i)
      plan_.data.training(plan_.batches.first_of(microbatch) + i,
                          {tokens() + i * input, input_.data() + i * input,
                           labels() + i * plan_.whole.rows});
  }

  int version_of(std::size_t stage, int microbatch) const {
    return plan_.reads ? plan_.reads(static_cast<int>(stage), microbatch)
                       : stages_[stage].newest();
  }

  void train_on(int n) {
    read_samples(n);
    const int share = plan_.batches.microbatches / plan_.replicas;
    const int replica = n % plan_.batches.microbatches / share;
    std::vector<pass<float>> passes;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      auto& p = passes.emplace_back(stages_[s].pass_on(
        version_of(s, n), replica, replica_begins_[static_cast<std::size_t>(replica)]));
      p.samples = plan_.batches.samples_of(n);
      p.threads = &threads_;
      p.labels = labels();
      p.tokens = tokens();
      p.input = s == 0 ? input_.data() : stages_[s - 1].output();
      loss_ += stages_[s].layers().forward(p).loss;
    }
    for (auto s = stages_.size(); s-- > 0;) {
      if (s + 1 < stages_.size())
        passes[s].output_gradient = stages_[s + 1].input_gradient();
      stages_[s].layers().backward(passes[s]);
    }
    replica_begins_[static_cast<std::size_t>(replica)] = false;
    samples_ += plan_.batches.samples_of(n);
  }

  double clip() {
    if (plan_.optimizer.clip == 0)
      return 1;
    double sum = 0;
    for (const auto& stage : stages_)
      for (const double squares : stage.squares())
        sum += squares;
    return clip_factor(plan_.optimizer.clip,
                       std::sqrt(sum) / static_cast<double>(samples_));
  }

  void update(int n) {
    for (auto& stage : stages_)
      stage.add_replicas();
    const bool by_stage = plan_.optimizer.scope == clip_scope::stage;
    const double factor = by_stage ? 1 : clip();
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const auto squares = by_stage ? stages_[s].squares() : std::vector<double>{};
      const double norm =
        std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0))
        / static_cast<double>(samples_);
      const double own = by_stage ? clip_factor(plan_.optimizer.clip, norm) : factor;
      const int next = n + 1 < total_ ? n + 1 : n;
      stages_[s].update(samples_, own,
                        plan_.reads ? plan_.reads(static_cast<int>(s), next)
                                    : stages_[s].newest() + 1);
    }
    result_.loss.push_back(loss_ / static_cast<double>(samples_ * plan_.whole.rows));
    if (plan_.progress)
      plan_.progress(result_.loss.back());
    loss_ = 0;
    samples_ = 0;
    replica_begins_.assign(replica_begins_.size(), true);
  }

  const plain_plan& plan_;
  team threads_;
  memory_account account_;
  int total_;
  int update_size_;
  std::vector<plain_stage> stages_;
  tensor_memory input_, labels_;
  trained result_;
  double loss_ = 0;          // summed over this minibatch
  std::int64_t samples_ = 0; // of this minibatch
  std::vector<bool> replica_begins_;
};

} // namespace

trained train_plainly(const plain_plan& plan) {
  return loop{plan}.run();
}

} // namespace troupe
