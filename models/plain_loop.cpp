#include "models/plain_loop.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

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
    : layers_(std::move(layers)),
      account_(account),
      optimizer_(plan.optimizer, layers_.layers(), plan.batches.batch * plan.steps,
                 account),
      gradients_(layers_.layers(), made_of(plan, layers_.layers(), first_layer)),
      norm_shares_(plan.norm_shares) {
    auto& initial = versions_[0] = new_buckets();
    for (std::size_t i = 0; i < initial.size(); ++i)
      plan.weights(first_layer + i, initial[i].data());
    for (int r = 0; r < plan.replicas; ++r)
      sums_.push_back(new_buckets());
    for (int d = 0; d < plan.directions && plan.sum_microbatch; ++d)
      totals_.push_back(new_buckets());
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
  std::vector<float*> parameters() { return writable(versions_.rbegin()->second); }
  std::vector<float*> sum() { return writable(sums_[0]); }

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

  /// Adds what the replicas have of a microbatch each to the totals.
  void add_microbatch(const plain_plan& plan, bool first_of_sum) {
    for (std::size_t d = 0; d < totals_.size(); ++d)
      for (std::size_t b = 0; b < totals_[d].size(); ++b) {
        std::vector<float*> arrays;
        for (auto r = d; r < sums_.size(); r += totals_.size())
          arrays.push_back(sums_[r][b].data());
        const auto n = totals_[d][b].values();
        gradients_.sum(b, arrays, plan.sum_microbatch);
        auto* const total = totals_[d][b].data();
        for (std::int64_t i = 0; i < n; ++i)
          total[i] = first_of_sum ? arrays[0][i] : total[i] + arrays[0][i];
      }
  }

  /// Adds the replicas' sums into the first.
  void add_replicas(const plain_plan& plan) {
    if (plan.sum_microbatch) {
      for (std::size_t b = 0; b < totals_.front().size(); ++b) {
        std::vector<float*> arrays;
        for (auto& total : totals_)
          arrays.push_back(total[b].data());
        add_in_order(arrays, totals_.front()[b].values());
        std::copy_n(arrays[0], totals_.front()[b].values(), sums_[0][b].data());
      }
      return;
    }
    for (std::size_t b = 0; b < sums_.front().size(); ++b) {
      std::vector<float*> arrays;
      for (auto& sum : sums_)
        arrays.push_back(sum[b].data());
      gradients_.sum(b, arrays, plan.sum ? plan.sum : add_in_order);
    }
  }

  std::vector<double> squares() const {
    return gradients_.squares(readable(sums_[0]), norm_shares_);
  }

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
  static std::vector<layer_list<float>> made_of(const plain_plan& plan,
                                                const layer_list<float>& layers,
                                                std::size_t first_layer) {
    std::vector<layer_list<float>> result;
    for (std::size_t i = 0; i < layers.size(); ++i)
      result.push_back(plan.made_of ? plan.made_of(first_layer + i)
                                    : layer_list<float>{layers[i]});
    return result;
  }

  static void add_in_order(const std::vector<float*>& arrays, std::int64_t n) {
    for (std::size_t r = 1; r < arrays.size(); ++r)
      for (std::int64_t i = 0; i < n; ++i)
        arrays[0][i] += arrays[r][i];
  }

  buckets new_buckets() const {
    buckets result;
    for (const auto& l : layers_.layers())
      result.emplace_back(l->bucket(), account_);
    return result;
  }

  slice<float> layers_;
  memory_account& account_;
  optimizer optimizer_;
  gradient_buckets gradients_;
  int norm_shares_;
  std::map<int, buckets> versions_;
  std::vector<buckets> sums_;   // a replica each
  std::vector<buckets> totals_; // a direction each, of microbatches summed before
  tensor_memory output_, input_gradient_, stash_, scratch_;
};

class loop {
public:
  explicit loop(const plain_plan& plan)
    : plan_(plan),
      threads_(plan.threads),
      share_(plan.batches.microbatches / plan.replicas),
      total_(share_ * plan.steps),
      update_size_(plan.update_every > 0 ? plan.update_every : share_),
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
    for (int first = 0; first < total_; first += update_size_) {
      const int next = std::min(first + update_size_, total_);
      if (plan_.sum_microbatch)
        train_together(first, next);
      else
        for (int replica = 0; replica < plan_.replicas; ++replica)
          for (int k = first; k < next; ++k)
            train_on(replica, k);
      update(next);
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

  int version_of(std::size_t stage, int k) const {
    return plan_.reads ? plan_.reads(static_cast<int>(stage), k)
                       : stages_[stage].newest();
  }

  /// The replicas' microbatches [first, next), those of one place side by side.
  void train_together(int first, int next) {
    std::vector<std::vector<double>> losses(static_cast<std::size_t>(plan_.replicas));
    for (int k = first; k < next; ++k) {
      for (int replica = 0; replica < plan_.replicas; ++replica) {
        train_on(replica, k);
        losses[static_cast<std::size_t>(replica)].push_back(std::exchange(loss_, 0));
      }
      for (auto& stage : stages_)
        stage.add_microbatch(plan_, k == first);
      replica_begins_.assign(replica_begins_.size(), true);
    }
    for (const auto& of_replica : losses)
      for (const double loss : of_replica)
        loss_ += loss;
  }

  /// The k-th microbatch of a replica.
  void train_on(int replica, int k) {
    const int n =
      k / share_ * plan_.batches.microbatches + replica * share_ + k % share_;
    read_samples(n);
    std::vector<pass<float>> passes;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      auto& p = passes.emplace_back(stages_[s].pass_on(
        version_of(s, k), replica, replica_begins_[static_cast<std::size_t>(replica)]));
      p.samples = plan_.batches.samples_of(n);
      p.first = plan_.batches.first_of(n);
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

  /// \param next of each replica's microbatches
  void update(int next) {
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      stages_[s].add_replicas(plan_);
      if (plan_.witness != nullptr)
        plan_.witness->summed(static_cast<int>(s), stages_[s].newest() + 1,
                              stages_[s].sum());
    }
    const bool by_stage = plan_.optimizer.scope == clip_scope::stage;
    const double factor = by_stage ? 1 : clip();
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const auto squares = by_stage ? stages_[s].squares() : std::vector<double>{};
      const double norm =
        std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0))
        / static_cast<double>(samples_);
      const double own = by_stage ? clip_factor(plan_.optimizer.clip, norm) : factor;
      stages_[s].update(samples_, own,
                        plan_.reads
                          ? plan_.reads(static_cast<int>(s), std::min(next, total_ - 1))
                          : stages_[s].newest() + 1);
      if (plan_.witness != nullptr)
        plan_.witness->made(static_cast<int>(s), stages_[s].newest(),
                            stages_[s].parameters());
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
  int share_; // microbatches of a batch that each replica has
  int total_; // microbatches of each replica
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
