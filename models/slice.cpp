// SPDX-License-Identifier: BSD-3-Clause
#include "models/slice.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace troupe {

loss_sum of_whole_samples(loss_sum sum, std::int64_t rows, std::int64_t length) {
  if (length > 0 && length != rows)
    sum.loss *= static_cast<double>(rows) / static_cast<double>(length);
  return sum;
}

slice_sizes largest(const slice_sizes& a, const slice_sizes& b) {
  return {.input = std::max(a.input, b.input),
          .output = std::max(a.output, b.output),
          .labels = std::max(a.labels, b.labels),
          .stash = std::max(a.stash, b.stash),
          .inputs = std::max(a.inputs, b.inputs),
          .kept = std::max(a.kept, b.kept),
          .scratch = std::max(a.scratch, b.scratch)};
}

template <class Scalar>
slice<Scalar>::slice(const network<Scalar>& whole, int first, int last, int threads,
                     recomputed_segments segments)
  : layers_(whole.layers.begin() + first, whole.layers.begin() + last),
    first_(first == 0),
    last_(last == static_cast<int>(whole.layers.size())),
    rows_(whole.rows),
    classes_(whole.classes),
    shard_(whole.shard),
    threads_(threads),
    waits_(
      shard_.count > 1
      || std::ranges::any_of(layers_, [](const auto& l) { return l->pieces() > 1; })),
    segments_(std::move(segments)) {
  // nop
}

template <class Scalar>
std::vector<slice<Scalar>> slice<Scalar>::cut_at(const network<Scalar>& whole,
                                                 const std::vector<int>& first_layers,
                                                 int threads) {
  std::vector<slice> result;
  for (std::size_t s = 0; s + 1 < first_layers.size(); ++s)
    result.emplace_back(whole, first_layers[s], first_layers[s + 1], threads);
  return result;
}

template <class Scalar>
slice_sizes slice<Scalar>::sizes(std::int64_t samples) const {
  slice_sizes result;
  layout(samples, result);
  result.input = layers_.front()->input_size(samples);
  result.output = last_ ? 0 : layers_.back()->output_size(samples);
  result.labels = last_ ? samples * rows_ : 0;
  result.scratch =
    largest_scratch(samples) + largest_kept(samples) + 2 * largest_inner(samples);
  return result;
}

template <class Scalar>
double slice<Scalar>::operations() const {
  double result = 0;
  for (const auto& l : layers_)
    result += l->operations();
  return result;
}

template <class Scalar>
double slice<Scalar>::recomputed_share() const {
  double last = 0;
  for (auto i = static_cast<std::size_t>(segments_.begins.back()); i < layers_.size();
       ++i)
    last += layers_[i]->operations();
  return segments_.begins.size() == 1 ? 1 : last / operations();
}

template <class Scalar>
std::vector<shard_collective<Scalar>>
slice<Scalar>::largest_collectives(std::int64_t samples) const {
  using kind = typename shard_collective<Scalar>::kind;
  if (shard_.count == 1)
    return {}; // rows to experts are no collective
  shard_collective<Scalar> sum{kind::sum}, gather{kind::gather}, scatter{kind::scatter};
  std::int64_t stored = 0;
  for (std::size_t i = 0; i < layers_.size(); ++i) { // the sums lie between layers
    if (i > 0 || !first_) {
      sum.values = std::max(sum.values, samples * layers_[i]->input());
      stored = std::max(stored, layers_[i]->input_size(samples));
    }
    if (i + 1 < layers_.size() || !last_) {
      sum.values = std::max(sum.values, samples * layers_[i]->output());
      stored = std::max(stored, layers_[i]->output_size(samples));
    }
  }
  if (last_)
    gather.values = shard_.count * cross_entropy<Scalar>::facts(samples * rows_);
  if (!shard_.by_sequence)
    return {sum, gather};
  scatter.values = shard_.count * std::exchange(sum.values, 0);
  gather.values =
    std::max(gather.values, 2 * shard_.count * stored); // dy and a norm's output
  for (const auto& l : layers_) {
    const auto norm = l->collective_after(layer_pass::weight_gradient, 0, {});
    sum.values = std::max(sum.values, norm.values);
  }
  return {sum, gather, scatter};
}

template <class Scalar>
bool slice<Scalar>::begins_segment(std::size_t layer) const {
  return std::ranges::binary_search(segments_.begins, static_cast<int>(layer));
}

template <class Scalar>
bool slice<Scalar>::feeds_segment(std::size_t layer) const {
  return layer + 1 < layers_.size() && begins_segment(layer + 1);
}

/// The first layer of a layer's segment.
template <class Scalar>
std::size_t slice<Scalar>::segment_begin(std::size_t layer) const {
  return static_cast<std::size_t>(
    *std::prev(std::ranges::upper_bound(segments_.begins, static_cast<int>(layer))));
}

// Layout of the stash: the saved values of each layer, then the layer's output unless
// the output leaves the slice. The last logits become their own gradient. Behind the
// logits follow the losses of all predictions, and the values that tensor shards
// exchange about the predictions. Segments share the same memory unless all segments
// are kept.
template <class Scalar>
std::vector<typename slice<Scalar>::layer_offsets>
slice<Scalar>::layout(std::int64_t samples, slice_sizes& ends) const {
  std::vector<layer_offsets> result;
  std::int64_t end = 0; // of the stash, so far
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const auto sizes = layers_[i]->sizes(samples, threads_);
    const bool top = i + 1 == layers_.size();
    const auto output = padded(layers_[i]->output_size(samples));
    layer_offsets offsets{};
    offsets.saved = begins_segment(i) && !segments_.keeps_all ? 0 : end;
    end = offsets.saved + padded(sizes.saved);
    auto& with_output = feeds_segment(i) ? ends.inputs : end;
    offsets.output = with_output;
    with_output += top && !last_ ? 0 : output;
    ends.stash = std::max(ends.stash, end);
    offsets.kept = ends.kept;
    offsets.upper = offsets.kept + padded(sizes.kept);
    ends.kept = offsets.upper + (top ? 0 : output);
    result.push_back(offsets);
  }
  if (last_)
    end += padded(samples * rows_);
  if (last_ && shard_.count > 1)
    end += padded(shard_.count * cross_entropy<Scalar>::facts(samples * rows_));
  ends.stash = std::max(ends.stash, end);
  return result;
}

namespace {

/// An address in memory; null if a pass does not have the memory.
template <class Scalar>
Scalar* place_in(Scalar* memory, std::int64_t offset) {
  return memory == nullptr ? nullptr : memory + offset;
}

} // namespace

template <class Scalar>
frame<Scalar> slice<Scalar>::frame_of(const pass<Scalar>& p, std::size_t i,
                                      const std::vector<layer_offsets>& offsets) const {
  const bool top = i + 1 == layers_.size();
  const auto output_of = [&](std::size_t layer) {
    return place_in(feeds_segment(layer) ? p.inputs : p.stash, offsets[layer].output);
  };
  auto* const output = output_of(i);
  return {
    .samples = p.samples,
    .first = p.first,
    .tokens = p.tokens,
    .x = i == 0 ? p.input : output_of(i - 1),
    .y = top && !last_ ? p.output : static_cast<void*>(output),
    .saved = place_in(p.stash, offsets[i].saved),
    .dy =
      top ? (last_ ? output : p.output_gradient) : place_in(p.kept, offsets[i].upper),
    .dx = i == 0 ? p.input_gradient
                 : static_cast<void*>(place_in(p.kept, offsets[i - 1].upper)),
    .kept = place_in(p.kept, offsets[i].kept),
    .parameters = p.parameters[i].now(),
    .gradients = p.gradients.empty() ? nullptr : p.gradients[i],
    .beta = p.beta,
    .scratch = p.scratch,
    .compute_stream = p.compute_stream,
  };
}

template <class Scalar>
void slice<Scalar>::forward(const pass<Scalar>& p, loss_sum& loss) const {
  forward_layers(p, 0, layers_.size());
  slice_sizes ends;
  if (last_)
    end_in_loss(p, layout(p.samples, ends), loss);
}

template <class Scalar>
void slice<Scalar>::recompute(const pass<Scalar>& p, loss_sum& loss) const {
  forward_layers(p, static_cast<std::size_t>(segments_.begins.back()), layers_.size());
  slice_sizes ends;
  if (last_)
    end_in_loss(p, layout(p.samples, ends), loss);
}

/// The forwards of layers [first, last).
template <class Scalar>
void slice<Scalar>::forward_layers(const pass<Scalar>& p, std::size_t first,
                                   std::size_t last) const {
  slice_sizes ends;
  const auto offsets = layout(p.samples, ends);
  for (auto i = first; i < last; ++i)
    layers_[i]->forward(frame_of(p, i, offsets));
}

/// A backward reaches a layer: if the layer ends a segment that has not been
/// recomputed, the segment's forward runs again.
template <class Scalar>
void slice<Scalar>::forward_again(const pass<Scalar>& p, std::size_t layer) const {
  if (feeds_segment(layer))
    forward_layers(p, segment_begin(layer), layer + 1);
}

template <class Scalar>
typename slice<Scalar>::loss_arrays
slice<Scalar>::loss_arrays_of(const pass<Scalar>& p,
                              const std::vector<layer_offsets>& offsets) const {
  const auto& top = *layers_.back();
  const auto logits =
    dense(p.stash + offsets.back().output, p.samples * rows_, top.output() / rows_);
  return {logits, gradient_of_logits(logits, top.loss_gradient()),
          logits.data + padded(logits.rows * logits.columns)};
}

/// Computes the loss, and turns the logits into the gradient of the logits.
template <class Scalar>
void slice<Scalar>::end_in_loss(const pass<Scalar>& p,
                                const std::vector<layer_offsets>& offsets,
                                loss_sum& loss) const {
  const auto a = loss_arrays_of(p, offsets);
  cross_entropy<Scalar>::forward(a.logits, p.labels,
                                 Scalar{1} / static_cast<Scalar>(rows_), a.gradient,
                                 a.row_losses, loss, *p.compute_stream);
}

template <class Scalar>
void slice<Scalar>::backward(const pass<Scalar>& p) const {
  for (auto i = layers_.size(); i-- > 0;) {
    forward_again(p, i);
    backward(p, i);
  }
}

template <class Scalar>
frame<Scalar> slice<Scalar>::backward_frame(const pass<Scalar>& p,
                                            std::size_t layer) const {
  slice_sizes ends;
  const auto offsets = layout(p.samples, ends);
  auto* const kept = p.scratch + largest_scratch(p.samples);
  Scalar* const inner[] = {kept + largest_kept(p.samples),
                           kept + largest_kept(p.samples) + largest_inner(p.samples)};
  auto f = frame_of(p, layer, offsets);
  f.kept = kept;
  if (layer + 1 < layers_.size())
    f.dy = inner[layer % 2];
  if (layer > 0)
    f.dx = inner[(layer - 1) % 2];
  return f;
}

template <class Scalar>
void slice<Scalar>::backward(const pass<Scalar>& p, std::size_t layer) const {
  const auto f = backward_frame(p, layer);
  layers_[layer]->input_gradient(f);
  layers_[layer]->weight_gradient(f);
}

template <class Scalar>
void slice<Scalar>::input_gradient(const pass<Scalar>& p) const {
  slice_sizes ends;
  const auto offsets = layout(p.samples, ends);
  for (auto i = layers_.size(); i-- > 0;) {
    forward_again(p, i);
    layers_[i]->input_gradient(frame_of(p, i, offsets));
  }
}

template <class Scalar>
void slice<Scalar>::weight_gradient(const pass<Scalar>& p) const {
  slice_sizes ends;
  const auto offsets = layout(p.samples, ends);
  for (auto i = layers_.size(); i-- > 0;)
    layers_[i]->weight_gradient(frame_of(p, i, offsets));
}

template <class Scalar>
std::int64_t slice<Scalar>::largest_scratch(std::int64_t samples) const {
  std::int64_t most = 0;
  for (const auto& l : layers_)
    most = std::max(most, l->sizes(samples, threads_).scratch);
  return padded(most);
}

template <class Scalar>
std::int64_t slice<Scalar>::largest_kept(std::int64_t samples) const {
  std::int64_t most = 0;
  for (const auto& l : layers_)
    most = std::max(most, l->sizes(samples, threads_).kept);
  return padded(most);
}

template <class Scalar>
std::int64_t slice<Scalar>::largest_inner(std::int64_t samples) const {
  std::int64_t most = 0;
  for (std::size_t i = 0; i + 1 < layers_.size(); ++i)
    most = std::max(most, layers_[i]->output_size(samples));
  return padded(most);
}

template class slice<float>;
template class slice<double>;

} // namespace troupe
