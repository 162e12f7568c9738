// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/slice.hpp"
#include "plan/run_plan.hpp"
#include "tests/models/plain_optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

/// The training that a run must do, in double: one loop over the microbatches. Layers
/// and samples are the project's. Versions, sums, means, clipping, rates and updates
/// are written here from the definitions. So are sizes and lengths of microbatches:
/// with shorter sequences a microbatch has a network that never had longer ones.
namespace plain {

class training {
public:
  /// The gradients that make each update. Microbatches count within a data replica.
  struct rule {
    int every; ///< Microbatches of each data replica that an update covers.
    /// The version that a stage reads for a microbatch.
    std::function<int(int stage, int microbatch)> reads;
  };

  training(const troupe::run_plan& plan, const troupe::network<double>& whole, rule by)
    : plan_(plan),
      work_(*plan.work),
      rule_(std::move(by)),
      all_(whole, 0, static_cast<int>(whole.layers.size()), 1) {
    for (std::size_t l = 0; l < whole.layers.size(); ++l) {
      std::vector<float> bucket(static_cast<std::size_t>(whole.layers[l]->bucket()));
      work_.weights(l, bucket.data());
      newest_.emplace_back();
      for (const float value : bucket)
        newest_.back().push_back({value});
    }
    keep_version();
    for (int begin = 0; begin < plan.dims.total(); begin += rule_.every)
      update(begin, std::min(begin + rule_.every, plan.dims.total()));
  }

  std::vector<double> loss; ///< One for each minibatch: the mean over predictions.
  /// Indices: version, layer, value.
  std::vector<std::vector<std::vector<double>>> versions;

private:
  using buckets = std::vector<std::vector<double>>;

  /// Samples of a microbatch, counted over all data replicas. Sizes differ by one, and
  /// larger ones come first.
  std::int64_t samples_of(int microbatch) const {
    const int pieces = plan_.dims.microbatches * plan_.mesh[troupe::axis::data],
              k = microbatch % pieces;
    if (plan_.uneven && !plan_.uneven->samples.empty())
      return plan_.uneven->samples[static_cast<std::size_t>(k)];
    return work_.batch / pieces + (k < work_.batch % pieces ? 1 : 0);
  }

  std::int64_t length_of(int microbatch) const {
    if (!plan_.uneven || plan_.uneven->lengths.empty())
      return work_.whole.options.length;
    const int pieces = plan_.dims.microbatches * plan_.mesh[troupe::axis::data],
              k = microbatch % pieces;
    const auto& lengths = plan_.uneven->lengths;
    return lengths[static_cast<std::size_t>(k) % lengths.size()];
  }

  std::int64_t first_of(int microbatch) const {
    std::int64_t result = 0;
    for (int k = 0; k < microbatch; ++k)
      result += samples_of(k);
    return result;
  }

  int stage_of(std::size_t layer) const {
    int stage = 0;
    while (work_.first_layers[static_cast<std::size_t>(stage) + 1]
           <= static_cast<int>(layer))
      ++stage;
    return stage;
  }

  void keep_version() {
    auto& version = versions.emplace_back();
    for (const auto& bucket : newest_)
      for (auto& values = version.emplace_back(); const auto& w : bucket)
        values.push_back(w.value);
  }

  void update(int begin, int end) {
    buckets sum;
    for (const auto& bucket : newest_)
      sum.emplace_back(bucket.size());
    double lost = 0;
    std::int64_t samples = 0;
    for (int data = 0; data < plan_.mesh[troupe::axis::data]; ++data)
      for (int k = begin; k < end; ++k) {
        const int share = plan_.dims.microbatches;
        const int n =
          k / share * share * plan_.mesh[troupe::axis::data] + data * share + k % share;
        lost += add(n, k, sum);
        samples += samples_of(n);
      }
    const auto all = static_cast<double>(samples);
    loss.push_back(lost / all);
    const auto& o = work_.optimizer;
    const double rate = rate_of(o, seen_, seen_ + all,
                                static_cast<double>(work_.batch) * plan_.dims.steps);
    seen_ += all;
    for (std::size_t l = 0; l < sum.size(); ++l)
      for (const auto& p : all_.layers()[l]->parameters()) {
        const auto first = static_cast<std::size_t>(p.offset),
                   last = first + static_cast<std::size_t>(p.values());
        for (auto i = first; i < last; ++i)
          newest_[l][i].update(
            o, rate, sum[l][i] / all * clipping_of(o.clip, norm(sum, l) / all),
            p.dims.size() > 1 || !o.decay_only_matrices);
      }
    keep_version();
  }

  /// The norm of all gradients that are clipped together with a layer's.
  double norm(const buckets& sum, std::size_t layer) {
    const bool alone = work_.optimizer.scope == troupe::clip_scope::stage;
    double squares = 0;
    for (std::size_t l = 0; l < sum.size(); ++l)
      if (!alone || stage_of(l) == stage_of(layer))
        for (const double g : sum[l])
          squares += g * g;
    return std::sqrt(squares);
  }

  /// Copies the parameters of a shorter network out of the whole network's, or results
  /// of the shorter network back. Of positions only the first are copied.
  template <class Copy>
  void for_each_common(const troupe::layer<double>& shorter, std::size_t l,
                       const Copy& copy) const {
    const auto& whole = *all_.layers()[l];
    for (const auto& p : shorter.parameters())
      copy(p.offset, whole.parameter_called(p.name).offset, p.values());
  }

  /// Adds the gradients of a microbatch's samples; returns the sum over samples of the
  /// mean loss over predictions. \param k the microbatch's number within the data
  /// replica
  double add(int microbatch, int k, buckets& sum) {
    const auto samples = samples_of(microbatch), first = first_of(microbatch);
    const auto length = length_of(microbatch), longest = work_.whole.options.length;
    auto model = work_.whole.options;
    model.length = length;
    const auto network = *troupe::make_network<double>(model);
    const troupe::slice<double> shorter{network, 0,
                                        static_cast<int>(network.layers.size()), 1};
    const auto sizes = shorter.sizes(samples);
    const auto room = [](std::int64_t n) { return static_cast<std::size_t>(n); };
    std::vector<std::int32_t> tokens, labels;
    for (std::int64_t i = 0; i < samples; ++i) {
      std::vector<std::int32_t> all(room(longest)), answers(room(longest));
      work_.data->training(first + i, {.tokens = all.data(), .labels = answers.data()});
      tokens.insert(tokens.end(), all.begin(), all.begin() + length);
      labels.insert(labels.end(), answers.begin(), answers.begin() + length);
    }
    std::vector<double> stash(room(sizes.stash)), scratch(room(sizes.scratch));
    troupe::stream alone;
    troupe::pass<double> p;
    p.samples = samples;
    p.first = first;
    p.tokens = tokens.data();
    p.labels = labels.data();
    p.stash = stash.data();
    p.scratch = scratch.data();
    p.beta = 1;
    p.compute_stream = &alone;
    buckets parameters, gradients;
    for (std::size_t l = 0; l < sum.size(); ++l) {
      const auto version = static_cast<std::size_t>(rule_.reads(stage_of(l), k));
      const auto& from = versions.at(version)[l];
      const auto& layer = *network.layers[l];
      auto& own = parameters.emplace_back(room(layer.bucket()));
      gradients.emplace_back(room(layer.bucket()));
      for_each_common(layer, l, [&](auto to, auto whole, auto n) {
        std::copy_n(from.begin() + whole, n, own.begin() + to);
      });
    }
    for (std::size_t l = 0; l < sum.size(); ++l) {
      p.parameters.push_back(parameters[l].data());
      p.gradients.push_back(gradients[l].data());
    }
    troupe::loss_sum result;
    shorter.forward(p, result);
    shorter.backward(p);
    for (std::size_t l = 0; l < sum.size(); ++l)
      for_each_common(*network.layers[l], l, [&](auto own, auto whole, auto n) {
        for (std::int64_t i = 0; i < n; ++i)
          sum[l][room(whole + i)] += gradients[l][room(own + i)];
      });
    return result.loss / static_cast<double>(length);
  }

  const troupe::run_plan& plan_;
  const troupe::training& work_;
  rule rule_;
  troupe::slice<double> all_;
  double seen_ = 0; // samples
  std::vector<std::vector<weight>> newest_;
};

} // namespace plain
