#include "models/evaluation.hpp"

#include <algorithm>

namespace troupe {

evaluator::evaluator(const network<float>& whole, const data_set& data,
                     std::int64_t most, std::int64_t batch, int threads)
  : data_(data),
    layers_(whole, 0, static_cast<int>(whole.layers.size()), threads),
    classifies_(!whole.reads_tokens),
    rows_(whole.rows),
    samples_(std::min(most, data.evaluation_size())),
    batch_(batch),
    threads_(threads) {
  const auto sizes = layers_.sizes(batch);
  input_ = {sizes.input, account_};
  labels_ = {sizes.labels, account_};
  stash_ = {sizes.stash, account_};
  scratch_ = {sizes.scratch, account_};
}

score evaluator::evaluate(const std::vector<const float*>& parameters) {
  auto* const tokens = reinterpret_cast<std::int32_t*>(input_.data());
  auto* const labels = reinterpret_cast<std::int32_t*>(labels_.data());
  const auto input = layers_.layers().front()->input();
  loss_sum sum;
  for (std::int64_t first = 0; first < samples_; first += batch_) {
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
    p.parameters = parameters;
    p.scratch = scratch_.data();
    p.threads = &threads_;
    const auto part = layers_.forward(p);
    sum.loss += part.loss;
    sum.correct += part.correct;
  }
  const auto predictions = static_cast<double>(samples_ * rows_);
  score result{sum.loss / predictions, {}};
  if (classifies_)
    result.accuracy = static_cast<double>(sum.correct) / predictions;
  return result;
}

} // namespace troupe
