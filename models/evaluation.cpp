// SPDX-License-Identifier: BSD-3-Clause
#include "models/evaluation.hpp"

#include "kernels/arrays.hpp"
#include "kernels/device.hpp"

#include <algorithm>
#include <utility>

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

/// The parts that were given; without any, the CPU computes all layers.
std::vector<evaluated_part> parts_or_cpu(const network<float>& whole,
                                         std::vector<evaluated_part> parts) {
  if (parts.empty())
    parts.push_back({count_of(whole), processor{}});
  return parts;
}

/// Memory that the processor of a part and the processors of the parts beside can read.
memory_space& space_of(const evaluated_part& current_part,
                       const std::vector<evaluated_part>& parts) {
  const auto on_gpu = [](const auto& part) { return part.where.is_gpu(); };
  const auto gpu = std::ranges::find_if(parts, on_gpu);
  return memory_of(on_gpu(current_part) || gpu == parts.end() ? current_part.where
                                                              : gpu->where);
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
    buffers_(layers_, samples, threads, account) {
  if (!last_)
    return;
  logits_ = {samples * rows_ * classes_, account};
  row_losses_ = {samples * rows_, account};
}

std::int64_t scored_layers::bytes(const network<float>& whole, int first, int last,
                                  std::int64_t samples, int threads) {
  const auto predictions = ends_at(whole, last) ? samples * whole.rows : 0;
  return forward_buffers::bytes(layers_of(whole, first, last), samples, threads)
         + predictions * (whole.classes + 1) * std::int64_t{sizeof(float)};
}

void scored_layers::forward(const frame<float>& in, const std::int32_t* labels,
                            std::span<const float* const> parameters,
                            loss_sum& loss) const {
  auto f = in;
  if (last_)
    f.y = logits_.data();
  buffers_.forward(layers_, f, parameters);
  const auto logits = dense(logits_.data(), f.samples * rows_, classes_);
  if (last_)
    cross_entropy<float>::forward(logits, labels, 1 / static_cast<float>(rows_), logits,
                                  row_losses_.data(), loss, *f.compute_stream);
}

score score_of(const network<float>& whole, const loss_sum& sum, std::int64_t samples) {
  const auto predictions = static_cast<double>(samples * whole.rows);
  score result{sum.loss / predictions, {}};
  if (!whole.reads_tokens)
    result.accuracy = static_cast<double>(sum.correct) / predictions;
  return result;
}

/// Layers that one processor computes, and the buffers of the layers there. A GPU reads
/// no memory of this machine but the GPU's own, and therefore reads copies of
/// parameters.
class evaluator::part {
public:
  /// \param where memory that all parts reach
  part(const network<float>& whole, int first, const evaluated_part& evaluated,
       std::int64_t samples, int threads, memory_space& where)
    : memory(where),
      first_(first),
      layers_(whole, first, evaluated.end, samples, threads_of(evaluated, threads),
              memory),
      above_(layers_.is_last() ? 0 : layers_.layers().back()->output_size(samples),
             memory),
      stream_(stream_on(evaluated.where, threads, whole.options.stored)) {
    for (const auto& l : layers_.layers())
      if (stream_.gpu() != nullptr)
        copies_.emplace_back(l->bucket(), memory);
  }

  static std::int64_t bytes(const network<float>& whole, int first,
                            const evaluated_part& evaluated, std::int64_t samples,
                            int threads) {
    const auto layers = layers_of(whole, first, evaluated.end);
    std::int64_t values =
      ends_at(whole, evaluated.end) ? 0 : layers.back()->output_size(samples);
    for (const auto& l : layers)
      values += evaluated.where.is_gpu() ? l->bucket() : 0;
    return scored_layers::bytes(whole, first, evaluated.end, samples,
                                threads_of(evaluated, threads))
           + values * std::int64_t{sizeof(float)};
  }

  /// Takes the parameters of the part's layers, and copies parameters to a GPU. \param
  /// buckets a bucket for each layer of the network
  void read(const std::vector<const float*>& buckets) {
    const std::span local_buckets{buckets.data() + first_, layers_.layers().size()};
    parameters_.assign(local_buckets.begin(), local_buckets.end());
    for (std::size_t i = 0; i < copies_.size(); ++i) {
      arrays<float>::copy(local_buckets[i], copies_[i].values(), copies_[i].data());
      parameters_[i] = copies_[i].data();
    }
  }

  /// Runs the part's layers, and waits for the end. Returns the input of the next part.
  const float* forward(const frame<float>& in, const std::int32_t* labels,
                       loss_sum& loss) {
    auto f = in;
    f.y = above_.data();
    f.compute_stream = &stream_;
    run_to_end([&] { layers_.forward(f, labels, parameters_, loss); }, &stream_);
    return above_.data();
  }

  memory_account memory;

private:
  static int threads_of(const evaluated_part& evaluated, int threads) {
    return evaluated.where.is_gpu() ? 1 : threads;
  }

  int first_; // layer
  scored_layers layers_;
  tensor_memory above_;               // input of the next part, if there is one
  std::vector<tensor_memory> copies_; // of parameters; none on the CPU
  std::vector<const float*> parameters_;
  stream stream_; // destroyed first; the destructor waits
};

evaluator::evaluator(const network<float>& whole, const data_set& data,
                     std::int64_t most, std::int64_t batch, int threads,
                     std::vector<evaluated_part> parts)
  : whole_(whole),
    data_(data),
    samples_(std::min(most, data.evaluation_size())),
    batch_(samples_a_forward(whole, batch)) {
  if (samples_ == 0)
    return;
  parts = parts_or_cpu(whole, std::move(parts));
  for (int first = 0; const auto& evaluated : parts) {
    parts_.emplace_back(whole, first, evaluated, batch_, threads,
                        space_of(evaluated, parts));
    first = evaluated.end;
  }
  auto& memory = parts_.front().memory;
  input_ = {whole.layers.front()->input_size(batch_), memory, whole.element_of_input()};
  labels_ = {batch_ * whole.rows, memory, element::int32};
}

evaluator::~evaluator() = default;

std::vector<std::int64_t> evaluator::bytes(const network<float>& whole,
                                           std::int64_t batch, int threads,
                                           std::vector<evaluated_part> parts) {
  const auto samples = samples_a_forward(whole, batch);
  std::vector<std::int64_t> result;
  for (int first = 0; const auto& evaluated : parts_or_cpu(whole, std::move(parts))) {
    result.push_back(part::bytes(whole, first, evaluated, samples, threads));
    first = evaluated.end;
  }
  result.front() += (whole.layers.front()->input_size(samples) + samples * whole.rows)
                    * std::int64_t{sizeof(float)};
  return result;
}

/// The loss of the samples that the input arrays hold.
loss_sum evaluator::loss_of(std::int64_t samples) {
  frame<float> in{.samples = samples, .tokens = input_.integers(), .x = input_.data()};
  loss_sum result;
  for (auto& next_part : parts_) {
    in.x = next_part.forward(in, labels_.integers(), result);
    in.tokens = nullptr;
  }
  return result;
}

std::optional<score> evaluator::evaluate(const std::vector<const float*>& parameters,
                                         const std::atomic<bool>* stopped) {
  const sample_view samples{input_.integers(), input_.data(), labels_.integers()};
  const auto input = whole_.layers.front()->input();
  for (auto& next_part : parts_)
    next_part.read(parameters);
  loss_sum sum;
  for (std::int64_t first = 0; first < samples_; first += batch_) {
    if (stopped != nullptr && *stopped)
      return {};
    const auto count = std::min(batch_, samples_ - first);
    for (std::int64_t i = 0; i < count; ++i)
      data_.evaluation(first + i, samples.offset_by(i, input, whole_.rows));
    const auto part = loss_of(count);
    sum.loss += part.loss;
    sum.correct += part.correct;
  }
  return score_of(whole_, sum, samples_);
}

} // namespace troupe
