#include "models/measured_costs.hpp"

#include "kernels/device.hpp"
#include "kernels/memory.hpp"
#include "models/slice.hpp"

#include <algorithm>
#include <chrono>

namespace troupe {

namespace {

constexpr int rounds = 5; // behind one that warms up

std::vector<int> a_unit_a_stage(const network<float>& whole) {
  return std::vector<int>(static_cast<std::size_t>(whole.units()), 1);
}

/// The network cut into its units, and a pass through them.
class measured_units {
public:
  measured_units(const network<float>& whole, const data_set& data,
                 const weight_source& weights, std::int64_t samples)
    : on_(1, whole.options.stored),
      slices_(slice<float>::cut_at(
        whole, *cut(whole, whole.units(), a_unit_a_stage(whole)), 1)),
      seconds_(slices_.size()) {
    read_samples(whole, data, samples);
    std::size_t layer = 0;
    for (const auto& s : slices_) {
      const auto sizes = s.sizes(samples);
      auto& p = passes_.emplace_back();
      p.samples = samples;
      p.first = 0;
      p.on = &on_;
      p.tokens = input_.integers();
      p.labels = labels_.integers();
      p.input = s.is_first() ? input_.data() : passes_[passes_.size() - 2].output;
      p.output = take(sizes.output);
      p.input_gradient = take(s.is_first() ? 0 : sizes.input);
      p.stash = take(sizes.stash);
      p.scratch = take(sizes.scratch);
      for (const auto& l : s.layers()) {
        auto* const bucket = take(l->bucket());
        weights(layer++, bucket);
        p.parameters.emplace_back(bucket);
        p.gradients.push_back(take(l->bucket()));
      }
    }
    for (std::size_t i = 0; i + 1 < passes_.size(); ++i)
      passes_[i].output_gradient = passes_[i + 1].input_gradient;
  }

  /// Forwards and backwards of all, once.
  void run() {
    loss_sum loss;
    for (std::size_t i = 0; i < slices_.size(); ++i)
      seconds_[i].push_back(seconds_of([&] { slices_[i].forward(passes_[i], loss); }));
    for (auto i = slices_.size(); i-- > 0;)
      seconds_[i].back() += seconds_of([&] { slices_[i].backward(passes_[i]); });
  }

  void forget() { seconds_.assign(slices_.size(), {}); }

  /// Of each, of what has run.
  std::vector<double> medians() {
    std::vector<double> result;
    for (auto& of_unit : seconds_) {
      const auto middle = of_unit.begin() + std::ssize(of_unit) / 2;
      std::ranges::nth_element(of_unit, middle);
      result.push_back(*middle);
    }
    return result;
  }

private:
  template <class Work>
  double seconds_of(const Work& pass) {
    using clock = std::chrono::steady_clock;
    const auto begin = clock::now();
    run_to_end(pass, &on_);
    return std::chrono::duration<double>(clock::now() - begin).count();
  }

  float* take(std::int64_t values) {
    return memory_.emplace_back(values, account_).data();
  }

  void read_samples(const network<float>& whole, const data_set& data,
                    std::int64_t samples) {
    const auto& first = slices_.front();
    input_ = {first.sizes(samples).input, account_, whole.element_of_input()};
    labels_ = {slices_.back().sizes(samples).labels, account_, element::int32};
    const sample_view to{input_.integers(), input_.data(), labels_.integers()};
    for (std::int64_t i = 0; i < samples; ++i)
      data.training(i, to.behind(i, first.layers().front()->input(), whole.rows));
  }

  stream on_;
  std::vector<slice<float>> slices_;
  memory_account account_;
  std::vector<tensor_memory> memory_;
  tensor_memory input_, labels_;
  std::vector<pass<float>> passes_;
  std::vector<std::vector<double>> seconds_;
};

} // namespace

std::vector<double> measured_costs(const network<float>& whole, const data_set& data,
                                   const weight_source& weights, std::int64_t samples) {
  measured_units units{whole, data, weights, samples};
  units.run();
  units.forget(); // it warmed up
  for (int round = 0; round < rounds; ++round)
    units.run();
  return units.medians();
}

} // namespace troupe
