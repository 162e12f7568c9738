// SPDX-License-Identifier: BSD-3-Clause
#include "models/measured_costs.hpp"

#include "kernels/device.hpp"
#include "kernels/memory.hpp"
#include "models/data/read_samples.hpp"
#include "models/slice.hpp"

#include <algorithm>
#include <chrono>

namespace troupe {

namespace {

constexpr int rounds = 5; // after one round that warms up

std::vector<int> a_unit_a_stage(const network<float>& whole) {
  return std::vector<int>(static_cast<std::size_t>(whole.units()), 1);
}

/// The network cut into units, with buffers and a pass for each unit.
class measured_units {
public:
  measured_units(const network<float>& whole, const data_set& data,
                 const weight_source& weights, std::int64_t samples)
    : stream_(1, whole.options.stored),
      slices_(slice<float>::cut_at(
        whole, *cut(whole, whole.units(), a_unit_a_stage(whole)), 1)),
      measured_(slices_.size()) {
    input_ = {slices_.front().sizes(samples).input, account_, whole.element_of_input()};
    labels_ = {slices_.back().sizes(samples).labels, account_, element::int32};
    read_samples(data, whole, {0, samples}, 0,
                 {input_.integers(), input_.data(), labels_.integers()});
    std::size_t layer = 0;
    for (const auto& s : slices_) {
      const auto sizes = s.sizes(samples);
      auto& p = passes_.emplace_back();
      p.samples = samples;
      p.first = 0;
      p.compute_stream = &stream_;
      p.tokens = input_.integers();
      p.labels = labels_.integers();
      p.input = s.is_first() ? input_.data() : passes_[passes_.size() - 2].output;
      p.output = allocate(sizes.output);
      p.input_gradient = allocate(s.is_first() ? 0 : sizes.input);
      p.stash = allocate(sizes.stash);
      p.kept = allocate(sizes.kept);
      p.scratch = allocate(sizes.scratch);
      for (const auto& l : s.layers()) {
        auto* const bucket = allocate(l->bucket());
        weights(layer++, bucket);
        p.parameters.emplace_back(bucket);
        p.gradients.push_back(allocate(l->bucket()));
      }
    }
    for (std::size_t i = 0; i + 1 < passes_.size(); ++i)
      passes_[i].output_gradient = passes_[i + 1].input_gradient;
  }

  /// Runs the forwards and backwards of all units once, and records the seconds of
  /// each.
  void run() {
    loss_sum loss;
    for (std::size_t i = 0; i < slices_.size(); ++i)
      measured_[i].forward.push_back(
        seconds_of([&] { slices_[i].forward(passes_[i], loss); }));
    for (auto i = slices_.size(); i-- > 0;) {
      measured_[i].input_gradient.push_back(
        seconds_of([&] { slices_[i].input_gradient(passes_[i]); }));
      measured_[i].weight_gradient.push_back(
        seconds_of([&] { slices_[i].weight_gradient(passes_[i]); }));
    }
  }

  void reset() { measured_.assign(slices_.size(), {}); }

  /// The median seconds of each unit, over the rounds since the last reset.
  std::vector<measured_unit> medians() const {
    std::vector<measured_unit> result;
    for (const auto& m : measured_)
      result.push_back(
        {median(m.forward), median(m.input_gradient), median(m.weight_gradient)});
    return result;
  }

private:
  /// Seconds of a unit, one value a round.
  struct rounds_of_unit {
    std::vector<double> forward, input_gradient, weight_gradient;
  };

  static double median(std::vector<double> seconds) {
    const auto middle = seconds.begin() + std::ssize(seconds) / 2;
    std::ranges::nth_element(seconds, middle);
    return *middle;
  }

  template <class Work>
  double seconds_of(const Work& pass) {
    using clock = std::chrono::steady_clock;
    const auto begin = clock::now();
    run_to_end(pass, &stream_);
    return std::chrono::duration<double>(clock::now() - begin).count();
  }

  float* allocate(std::int64_t values) {
    return memory_.emplace_back(values, account_).data();
  }

  stream stream_;
  std::vector<slice<float>> slices_;
  memory_account account_;
  std::vector<tensor_memory> memory_;
  tensor_memory input_, labels_;
  std::vector<pass<float>> passes_;
  std::vector<rounds_of_unit> measured_;
};

} // namespace

std::vector<measured_unit> measured_costs(const network<float>& whole,
                                          const data_set& data,
                                          const weight_source& weights,
                                          std::int64_t samples) {
  measured_units units{whole, data, weights, samples};
  units.run();
  units.reset(); // the first round warmed up
  for (int round = 0; round < rounds; ++round)
    units.run();
  return units.medians();
}

} // namespace troupe
