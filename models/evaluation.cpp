#include "models/evaluation.hpp"

#include <algorithm>

namespace troupe {

namespace {

layer_list<float> layers_of(const network<float>& whole, int first, int last) {
  return {whole.layers.begin() + first, whole.layers.begin() + last};
}

int count_of(const network<float>& whole) {
  return static_cast<int>(whole.layers.size());
}

bool ends_at(const network<float>& whole, int last) {
  return last == count_of(whole);
}

} // namespace

std::int64_t samples_a_forward(const network<float>& whole, std::int64_t batch) {
  constexpr std::int64_t rows_a_forward = 512;
  return std::clamp<std::int64_t>(rows_a_forward / whole.rows, 1, batch);
}

scored_layers::scored_layers(const network<float>& whole, int first, int last,
                             std::int64_t samples, int threads, memory_account& account)
  : layers_(layers_of(whole, first, last)),
    last_(ends_at(whole, last)),
    rows_(whole.rows),
    classes_(whole.classes),
    room_(layers_, samples, threads, account) {
  if (!last_)
    return;
  logits_ = {samples * rows_ * classes_, account};
  row_losses_ = {samples * rows_, account};
}

std::int64_t scored_layers::bytes(const network<float>& whole, int first, int last,
                                  std::int64_t samples, int threads) {
  const auto predictions = ends_at(whole, last) ? samples * whole.rows : 0;
  return forward_room::bytes(layers_of(whole, first, last), samples, threads)
         + predictions * (whole.classes + 1) * std::int64_t{sizeof(float)};
}

void scored_layers::forward(const frame<float>& in, const std::int32_t* labels,
                            std::span<const float* const> parameters,
                            loss_sum& loss) const {
  auto f = in;
  if (last_)
    f.y = logits_.data();
  room_.forward(layers_, f, parameters);
  if (last_)
    cross_entropy<float>::forward(dense(logits_.data(), f.samples * rows_, classes_),
                                  labels, 1 / static_cast<float>(rows_),
                                  row_losses_.data(), loss, *f.on);
}

score score_of(const network<float>& whole, const loss_sum& sum, std::int64_t samples) {
  const auto predictions = static_cast<double>(samples * whole.rows);
  score result{sum.loss / predictions, {}};
  if (!whole.reads_tokens)
    result.accuracy = static_cast<double>(sum.correct) / predictions;
  return result;
}

evaluator::evaluator(const network<float>& whole, const data_set& data,
                     std::int64_t most, std::int64_t batch, int threads)
  : whole_(whole),
    data_(data),
    samples_(std::min(most, data.evaluation_size())),
    batch_(samples_a_forward(whole, batch)),
    on_(threads, whole.options.stored),
    layers_(whole, 0, count_of(whole), batch_, threads, account_),
    input_(whole.layers.front()->input_room(batch_), account_,
           whole.element_of_input()),
    labels_(batch_ * whole.rows, account_, element::int32) {
  // nop
}

std::int64_t evaluator::bytes(const network<float>& whole, std::int64_t batch,
                              int threads) {
  const auto samples = samples_a_forward(whole, batch);
  return scored_layers::bytes(whole, 0, count_of(whole), samples, threads)
         + (whole.layers.front()->input_room(samples) + samples * whole.rows)
             * std::int64_t{sizeof(float)};
}

std::optional<score> evaluator::evaluate(const std::vector<const float*>& parameters,
                                         const std::atomic<bool>* stopped) {
  const sample_view samples{input_.integers(), input_.data(), labels_.integers()};
  const auto input = whole_.layers.front()->input();
  loss_sum sum;
  for (std::int64_t first = 0; first < samples_; first += batch_) {
    if (stopped != nullptr && *stopped)
      return {};
    const auto count = std::min(batch_, samples_ - first);
    for (std::int64_t i = 0; i < count; ++i)
      data_.evaluation(first + i, samples.behind(i, input, whole_.rows));
    loss_sum part;
    layers_.forward(
      {.samples = count, .tokens = samples.tokens, .x = samples.pixels, .on = &on_},
      samples.labels, parameters, part);
    sum.loss += part.loss;
    sum.correct += part.correct;
  }
  return score_of(whole_, sum, samples_);
}

} // namespace troupe
