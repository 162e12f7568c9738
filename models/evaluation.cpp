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

} // namespace

evaluator::evaluator(const network<float>& whole, const data_set& data,
                     std::int64_t most, std::int64_t batch, int threads)
  : data_(data),
    layers_(slice<float>::cut_at(whole, every_layer(whole), threads)),
    classifies_(!whole.reads_tokens),
    rows_(whole.rows),
    samples_(std::min(most, data.evaluation_size())),
    batch_(std::clamp<std::int64_t>(rows_a_forward / rows_, 1, batch)),
    threads_(threads) {
  slice_sizes largest;
  for (const auto& l : layers_) {
    const auto sizes = l.sizes(batch_);
    largest.output = std::max(largest.output, sizes.output);
    largest.stash = std::max(largest.stash, sizes.stash);
    largest.scratch = std::max(largest.scratch, sizes.scratch);
  }
  input_ = {layers_.front().sizes(batch_).input, account_};
  labels_ = {layers_.back().sizes(batch_).labels, account_};
  stash_ = {largest.stash, account_};
  scratch_ = {largest.scratch, account_};
  for (auto& activations : between_)
    activations = {largest.output, account_};
}

std::optional<score> evaluator::evaluate(const std::vector<const float*>& parameters,
                                         const std::atomic<bool>* stopped) {
  auto* const tokens = reinterpret_cast<std::int32_t*>(input_.data());
  auto* const labels = reinterpret_cast<std::int32_t*>(labels_.data());
  const auto input = layers_.front().layers().front()->input();
  loss_sum sum;
  for (std::int64_t first = 0; first < samples_; first += batch_) {
    if (stopped != nullptr && *stopped)
      return {};
    const auto count = std::min(batch_, samples_ - first);
    for (std::int64_t i = 0; i < count; ++i)
      data_.evaluation(
        first + i, {tokens + i * input, input_.data() + i * input, labels + i * rows_});
    pass<float> p;
    p.samples = count;
    p.tokens = tokens;
    p.input = input_.data();
    p.labels = labels;
    p.stash = stash_.data();
    p.scratch = scratch_.data();
    p.threads = &threads_;
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      p.parameters = {parameters[l]};
      p.output = between_[l % 2].data();
      const auto part = layers_[l].forward(p);
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
