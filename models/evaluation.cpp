#include "models/evaluation.hpp"

#include <algorithm>
#include <numeric>

namespace troupe {

namespace {

/// Enough rows of activations for fast products.
constexpr std::int64_t rows_a_forward = 512;

std::vector<int> every_layer(const network<float>& whole) {
  std::vector<int> result(whole.layers.size() + 1);
  std::iota(result.begin(), result.end(), 0);
  return result;
}

/// What a forward needs of so many samples through each layer by itself.
slice_sizes largest_of(const std::vector<slice<float>>& layers, std::int64_t samples) {
  slice_sizes result;
  for (const auto& l : layers) {
    const auto sizes = l.sizes(samples);
    result.output = std::max(result.output, sizes.output);
    result.stash = std::max(result.stash, sizes.stash);
    result.scratch = std::max(result.scratch, sizes.scratch);
  }
  result.input = layers.front().sizes(samples).input;
  result.labels = layers.back().sizes(samples).labels;
  return result;
}

std::int64_t samples_a_forward(const network<float>& whole, std::int64_t batch) {
  return std::clamp<std::int64_t>(rows_a_forward / whole.rows, 1, batch);
}

} // namespace

evaluator::evaluator(const network<float>& whole, const data_set& data,
                     std::int64_t most, std::int64_t batch, int threads)
  : data_(data),
    layers_(slice<float>::cut_at(whole, every_layer(whole), threads)),
    classifies_(!whole.reads_tokens),
    rows_(whole.rows),
    samples_(std::min(most, data.evaluation_size())),
    batch_(samples_a_forward(whole, batch)),
    on_(threads, whole.options.stored) {
  const auto sizes = largest_of(layers_, batch_);
  input_ = {sizes.input, account_, whole.element_of_input()};
  labels_ = {sizes.labels, account_, element::int32};
  stash_ = {sizes.stash, account_};
  scratch_ = {sizes.scratch, account_};
  for (auto& activations : between_)
    activations = {sizes.output, account_};
}

std::int64_t evaluator::bytes(const network<float>& whole, std::int64_t batch,
                              int threads) {
  const auto layers = slice<float>::cut_at(whole, every_layer(whole), threads);
  const auto sizes = largest_of(layers, samples_a_forward(whole, batch));
  return (sizes.input + sizes.labels + sizes.stash + sizes.scratch + 2 * sizes.output)
         * std::int64_t{sizeof(float)};
}

std::optional<score> evaluator::evaluate(const std::vector<const float*>& parameters,
                                         const std::atomic<bool>* stopped) {
  const sample_view samples{input_.integers(), input_.data(), labels_.integers()};
  const auto input = layers_.front().layers().front()->input();
  loss_sum sum;
  for (std::int64_t first = 0; first < samples_; first += batch_) {
    if (stopped != nullptr && *stopped)
      return {};
    const auto count = std::min(batch_, samples_ - first);
    for (std::int64_t i = 0; i < count; ++i)
      data_.evaluation(first + i, samples.behind(i, input, rows_));
    pass<float> p;
    p.samples = count;
    p.tokens = samples.tokens;
    p.input = samples.pixels;
    p.labels = samples.labels;
    p.stash = stash_.data();
    p.scratch = scratch_.data();
    p.on = &on_;
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      p.parameters = {parameters[l]};
      p.output = between_[l % 2].data();
      loss_sum part;
      layers_[l].forward(p, part);
      sum.loss += part.loss;
      sum.correct += part.correct;
      p.input = p.output;
    }
  }
  const auto predictions = static_cast<double>(samples_ * rows_);
  score result{sum.loss / predictions, {}};
  if (classifies_)
    result.accuracy = static_cast<double>(sum.correct) / predictions;
  return result;
}

} // namespace troupe
