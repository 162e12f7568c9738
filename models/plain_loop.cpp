// SPDX-License-Identifier: BSD-3-Clause
#include "models/plain_loop.hpp"

#include "kernels/arrays.hpp"
#include "kernels/device.hpp"
#include "models/data/read_samples.hpp"
#include "models/plain_stage.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

namespace troupe {

namespace {

class loop {
public:
  explicit loop(const plain_plan& plan)
    : plan_(plan),
      stream_(
        stream_on(plan.compute_processor, plan.threads, plan.whole.options.stored)),
      account_(memory_of(plan.compute_processor)),
      of_samples_(memory_of_samples(plan.compute_processor)),
      share_(plan.batches.microbatches / plan.replicas),
      total_(share_ * plan.steps),
      update_size_(plan.update_every > 0 ? plan.update_every : share_),
      tied_(plan.whole.tied()),
      replica_begins_(static_cast<std::size_t>(plan.replicas), true) {
    for (std::size_t s = 0; s + 1 < plan.first_layers.size(); ++s)
      stages_.emplace_back(plan, s, account_);
    slice_sizes sizes;
    for (const auto& [samples, length] : plan.batches.shapes())
      for (const auto* stage : {&stages_.front(), &stages_.back()})
        sizes = troupe::largest(sizes, stage->layers(length).sizes(samples));
    input_ = {sizes.input, of_samples_, plan.whole.element_of_input()};
    labels_ = {sizes.labels, of_samples_, element::int32};
  }

  trained run() {
    for (int first = 0; first < total_; first += update_size_) {
      const int next = std::min(first + update_size_, total_);
      sum_minibatch(first, next);
      update(next);
    }
    for (const auto& stage : stages_)
      stage.collect(result_.parameters, result_.gradients);
    return std::move(result_);
  }

private:
  /// Microbatches in the order in which some stages sum them, and the stages.
  struct summing {
    std::vector<int> order;
    std::vector<std::size_t> stages;
  };

  /// Losses of microbatches, one map a replica.
  using losses_of_minibatch = std::vector<std::map<int, double>>;

  std::vector<summing> orders_of(int first, int next) const {
    std::vector<summing> result;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      std::vector<int> order;
      for (int k = first; k < next; ++k)
        order.push_back(plan_.orders.empty()
                          ? k
                          : first
                              + plan_.orders[s][static_cast<std::size_t>(k - first)]);
      const auto same = std::ranges::find(result, order, &summing::order);
      if (same != result.end())
        same->stages.push_back(s);
      else
        result.push_back({std::move(order), {s}});
    }
    return result;
  }

  void sum_minibatch(int first, int next) {
    const auto orders = orders_of(first, next);
    for (const auto& [order, stages] : orders) {
      loss_ = 0;
      samples_ = 0;
      replica_begins_.assign(replica_begins_.size(), true);
      losses_of_minibatch losses(static_cast<std::size_t>(plan_.replicas));
      if (plan_.sum_microbatch)
        train_together(order, losses);
      else
        for (int replica = 0; replica < plan_.replicas; ++replica)
          for (const int k : order)
            train_on(replica, k, losses);
      for (const auto& of_replica : losses)
        for (const auto& [k, loss] : of_replica)
          loss_ += loss;
      for (const auto s : stages)
        if (orders.size() > 1)
          stages_[s].save_sums();
    }
    for (auto& stage : stages_)
      if (orders.size() > 1)
        stage.restore_sums();
  }

  void read_samples(int microbatch) {
    troupe::read_samples(plan_.data, plan_.whole, plan_.batches.range_of(microbatch),
                         plan_.batches.length_of(microbatch),
                         {input_.integers(), input_.data(), labels_.integers()});
  }

  int version_of(std::size_t stage, int k) const {
    return plan_.reads ? plan_.reads(static_cast<int>(stage), k)
                       : stages_[stage].newest();
  }

  /// Trains on the replicas' microbatches together: the k-th of every replica, then a
  /// sum.
  void train_together(const std::vector<int>& order, losses_of_minibatch& losses) {
    for (const int k : order) {
      for (int replica = 0; replica < plan_.replicas; ++replica)
        train_on(replica, k, losses);
      for (auto& stage : stages_)
        stage.add_microbatch(k == order.front());
      replica_begins_.assign(replica_begins_.size(), true);
    }
  }

  /// Trains on the k-th microbatch of a replica.
  void train_on(int replica, int k, losses_of_minibatch& losses) {
    const int n =
      k / share_ * plan_.batches.microbatches + replica * share_ + k % share_;
    read_samples(n);
    loss_sum loss;
    run_to_end([&] { launch(replica, k, n, loss); }, &stream_);
    losses[static_cast<std::size_t>(replica)][k] =
      of_whole_samples(loss, plan_.whole.rows, plan_.batches.length_of(n)).loss;
    replica_begins_[static_cast<std::size_t>(replica)] = false;
    samples_ += plan_.batches.samples_of(n);
  }

  /// Launches the forwards and backwards of microbatch n, the replica's k-th.
  void launch(int replica, int k, int n, loss_sum& loss) {
    std::vector<pass<float>> passes;
    const auto length = plan_.batches.length_of(n);
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      auto& p = passes.emplace_back(stages_[s].pass_on(
        version_of(s, k), replica, replica_begins_[static_cast<std::size_t>(replica)]));
      p.samples = plan_.batches.samples_of(n);
      p.first = plan_.batches.first_of(n);
      p.compute_stream = &stream_;
      p.labels = labels_.integers();
      p.tokens = input_.integers();
      p.input = s == 0 ? input_.data() : stages_[s - 1].output();
      stages_[s].layers(length).forward(p, loss);
    }
    for (auto s = stages_.size(); s-- > 0;) {
      if (s + 1 < stages_.size())
        passes[s].output_gradient = stages_[s + 1].input_gradient();
      stages_[s].layers(length).backward(passes[s]);
    }
  }

  double clip() {
    if (plan_.optimizer.clip == 0)
      return 1;
    double sum = 0;
    for (const auto& stage : stages_)
      for (const double squares : stage.squares(stream_))
        sum += squares;
    return clip_factor(plan_.optimizer.clip,
                       std::sqrt(sum) / static_cast<double>(samples_));
  }

  float* gradient_at(const tied_matrix::location& copy_location) {
    const auto& begins = plan_.first_layers;
    const auto s = static_cast<std::size_t>(
      std::ranges::upper_bound(begins, static_cast<int>(copy_location.layer))
      - begins.begin() - 1);
    return stages_[s].sum()[copy_location.layer - static_cast<std::size_t>(begins[s])]
           + copy_location.offset;
  }

  /// Adds the gradients of a tied matrix, the head's plus the embedding's. Both copies
  /// get the sum, so that equal values stay equal. (The kernels are the same as in a
  /// run; the replay adds with code of its own.)
  void add_tied() {
    if (!tied_)
      return;
    auto* const head = gradient_at(tied_->head);
    auto* const embedding = gradient_at(tied_->embedding);
    run_to_end(
      [&] {
        arrays<float>::add(embedding, tied_->values, head, stream_);
        arrays<float>::copy(head, tied_->values, embedding, stream_);
      },
      &stream_);
  }

  /// Makes the update after microbatch next - 1 of each replica. \param next index of a
  /// replica's microbatches
  void update(int next) {
    for (auto& stage : stages_)
      stage.add_replicas();
    add_tied();
    for (std::size_t s = 0; s < stages_.size() && plan_.witness != nullptr; ++s)
      plan_.witness->summed(static_cast<int>(s), stages_[s].newest() + 1,
                            stages_[s].sum());
    const bool by_stage = plan_.optimizer.scope == clip_scope::stage;
    const double factor = by_stage ? 1 : clip();
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const auto squares =
        by_stage ? stages_[s].squares(stream_) : std::vector<double>{};
      const double norm =
        std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0))
        / static_cast<double>(samples_);
      const double stage_factor =
        by_stage ? clip_factor(plan_.optimizer.clip, norm) : factor;
      stages_[s].update(samples_, stage_factor,
                        plan_.reads
                          ? plan_.reads(static_cast<int>(s), std::min(next, total_ - 1))
                          : stages_[s].newest() + 1,
                        stream_);
      if (plan_.witness != nullptr)
        plan_.witness->updated(static_cast<int>(s), stages_[s].newest(),
                               stages_[s].parameters());
    }
    result_.loss.push_back(loss_ / static_cast<double>(samples_ * plan_.whole.rows));
    if (plan_.progress)
      plan_.progress(result_.loss.back());
  }

  const plain_plan& plan_;
  stream stream_;
  memory_account account_, of_samples_;
  int share_; // microbatches of a batch that each replica has
  int total_; // microbatches of each replica
  int update_size_;
  std::optional<tied_matrix> tied_;
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
