// SPDX-License-Identifier: BSD-3-Clause
#include "models/layers/half_block.hpp"

#include "kernels/arrays.hpp"
#include "kernels/bias.hpp"
#include "kernels/layer_norm.hpp"
#include "kernels/matmul.hpp"

#include <utility>

namespace troupe {

template <class Scalar>
half_block<Scalar>::half_block(const gpt_shape& dims, std::vector<parameter> parameters)
  : layer<Scalar>(multiplied(std::move(parameters), {up, down}),
                  {dims.positions() * dims.width, dims.stored},
                  {dims.positions() * dims.width, dims.stored}),
    dims_(dims),
    up_(this->parameters()[up].dims[1]),
    down_(this->parameters()[down].dims[0]) {
  // nop
}

template <class Scalar>
std::vector<parameter>
half_block<Scalar>::divided(std::vector<parameter> whole, std::string_view inner,
                            std::int64_t unit, std::int64_t blocks,
                            tensor_shard shard) {
  whole[up] = part_of(std::move(whole[up]), {inner, 1, unit, blocks}, shard);
  whole[up_bias] = part_of(std::move(whole[up_bias]), {inner, 0, unit, blocks}, shard);
  whole[down] = part_of(std::move(whole[down]), {inner, 0, unit}, shard);
  return whole;
}

/// The arrays of a frame: Ro local rows of inputs and outputs, R rows elsewhere.
template <class Scalar>
struct half_block<Scalar>::frame_arrays {
  stored_matrix<const Scalar> x, dy; // (Ro, C)
  stored_matrix<Scalar> y, dx;       // (Ro, C)
  // saved
  stored_matrix<Scalar> normed; // the norm's output (Ro, C)
  Scalar *mean, *rstd;          // (Ro)
  inner_arrays inner;
  // kept
  stored_matrix<Scalar> dwide; // (R, U)
  matrix<Scalar> dnormed;      // (R, C)
  /// By sequence, dy and the norm's output of all rows, side by side so that one gather
  /// brings both (R, 2C).
  stored_matrix<Scalar> gathered;
  // The inputs and outputs of a forward's collectives (R, C): the norm's output, then
  // in the same memory the summed output. Without collectives the two are the saved
  // array, and y.
  stored_matrix<Scalar> shared_normed, branch;
  // inputs of the weight gradients
  stored_matrix<const Scalar> all_dy, all_normed; // (R, C)
  layer_sizes sizes;
};

template <class Scalar>
typename half_block<Scalar>::frame_arrays
half_block<Scalar>::arrays_of(const frame<Scalar>& f, int threads) const {
  const auto rows = dims_.rows(f.samples), local_rows = dims_.local_rows(f.samples);
  const auto width = dims_.width;
  const auto stored = dims_.stored;
  array_layout<Scalar> saved{f.saved}, kept{f.kept}, scratch{f.scratch};
  frame_arrays a{.x = this->x(f, local_rows),
                 .dy = this->dy(f, local_rows),
                 .y = this->y(f, local_rows),
                 .dx = this->dx(f, local_rows),
                 .normed = saved.allocate(local_rows, width, stored),
                 .mean = saved.allocate(local_rows),
                 .rstd = saved.allocate(local_rows),
                 .inner = {.wide = saved.allocate(rows, up_, stored),
                           .narrow = saved.allocate(rows, down_, stored),
                           .extra = saved.allocate(extra(f.samples))},
                 .dwide = kept.allocate(rows, up_, stored),
                 .dnormed = dense(kept.allocate(rows * width), rows, width)};
  a.all_dy = a.dy;
  a.all_normed = a.shared_normed = a.normed;
  a.branch = a.y;
  if (by_sequence() || (pieces() > 1 && stored != precision::fp32)) {
    auto* const shared_array = scratch.allocate(rows * width);
    a.branch = dense(shared_array, rows, width);
    if (by_sequence())
      a.shared_normed = stored_at<Scalar>(shared_array, rows, width, stored);
  }
  if (by_sequence()) {
    a.gathered = kept.allocate(rows, 2 * width, stored);
    a.all_dy = a.gathered.column_range(0, width);
    a.all_normed = a.gathered.column_range(width, width);
  }
  a.inner.space = scratch.allocate(space(f.samples, threads));
  a.sizes = {.saved = saved.end(), .kept = kept.end(), .scratch = scratch.end()};
  return a;
}

template <class Scalar>
layer_sizes half_block<Scalar>::sizes(std::int64_t samples, int threads) const {
  return arrays_of({.samples = samples}, threads).sizes;
}

template <class Scalar>
int half_block<Scalar>::pieces() const {
  if (by_sequence())
    return 3;
  return dims_.shard.count > 1 ? 2 : 1;
}

template <class Scalar>
shard_collective<Scalar>
half_block<Scalar>::collective_after(layer_pass pass, int piece,
                                     const frame<Scalar>& f) const {
  using kind = typename shard_collective<Scalar>::kind;
  if (by_sequence() && pass == layer_pass::weight_gradient)
    return sum_of_norm(*this, ln_gain, ln_bias, f);
  if (piece + 1 >= pieces() || pass == layer_pass::weight_gradient)
    return {};
  const auto a = arrays_of(f, 1);
  const bool forward = pass == layer_pass::forward;
  const auto values = dims_.rows(f.samples) * dims_.width;
  if (piece == this->middle())
    return {by_sequence() ? kind::scatter : kind::sum,
            forward ? a.branch.plain().data : a.dnormed.data, values};
  const auto& gathered = forward ? a.shared_normed : a.gathered;
  return {kind::gather, static_cast<Scalar*>(gathered.data),
          stored_size<Scalar>(forward ? values : 2 * values, dims_.stored)};
}

template <class Scalar>
void half_block<Scalar>::forward(const frame<Scalar>& f, int piece) const {
  const auto a = arrays_of(f, f.compute_stream->threads());
  if (piece == 0)
    layer_norm<Scalar>::forward(a.x, this->weight(f, ln_gain), this->weight(f, ln_bias),
                                a.normed, a.mean, a.rstd, *f.compute_stream);
  if (piece < this->middle())
    arrays<Scalar>::copy(a.normed, dims_.local_part(a.shared_normed),
                         *f.compute_stream);
  if (piece == this->middle())
    up_and_down(f, a);
  if (piece > this->middle())
    bias<Scalar>::add_with_residual(dims_.local_part(a.branch).plain(),
                                    this->weight(f, down_bias), a.x, a.y,
                                    *f.compute_stream);
}

template <class Scalar>
void half_block<Scalar>::up_and_down(const frame<Scalar>& f,
                                     const frame_arrays& a) const {
  inner_forward(f, a.shared_normed, a.inner);
  epilogue<Scalar> end;
  if (pieces() == 1)
    end = {.kind = epilogue_kind::bias_residual,
           .bias = this->weight(f, down_bias),
           .x = a.x};
  matmul<Scalar>(a.inner.narrow, down_weight(f), 0, a.branch, *f.compute_stream, end);
}

template <class Scalar>
void half_block<Scalar>::input_gradient(const frame<Scalar>& f, int piece) const {
  const auto a = arrays_of(f, f.compute_stream->threads());
  if (piece < this->middle()) {
    const auto local_gathered = dims_.local_part(a.gathered);
    arrays<Scalar>::copy(a.dy, local_gathered.column_range(0, dims_.width),
                         *f.compute_stream);
    arrays<Scalar>::copy(a.normed,
                         local_gathered.column_range(dims_.width, dims_.width),
                         *f.compute_stream);
  }
  if (piece == this->middle()) {
    inner_backward(f, a.all_dy, a.inner, a.dwide);
    matmul<Scalar>(a.dwide, up_weight(f).t(), 0, a.dnormed, *f.compute_stream);
  }
  if (piece + 1 == pieces())
    layer_norm<Scalar>::input_gradient(a.x, this->weight(f, ln_gain), a.mean, a.rstd,
                                       dims_.local_part(a.dnormed), a.dy, a.dx,
                                       *f.compute_stream);
}

template <class Scalar>
void half_block<Scalar>::weight_gradient(const frame<Scalar>& f) const {
  const auto a = arrays_of(f, f.compute_stream->threads());
  matmul<Scalar>(a.inner.narrow.t(), a.all_dy, f.beta,
                 dense(this->gradient(f, down), down_, dims_.width), *f.compute_stream);
  bias<Scalar>::gradient(a.all_dy, f.beta, this->gradient(f, down_bias),
                         *f.compute_stream);
  matmul<Scalar>(a.all_normed.t(), a.dwide, f.beta,
                 dense(this->gradient(f, up), dims_.width, up_), *f.compute_stream);
  bias<Scalar>::gradient(a.dwide, f.beta, this->gradient(f, up_bias),
                         *f.compute_stream);
  layer_norm<Scalar>::weight_gradient(a.x, a.mean, a.rstd, dims_.local_part(a.dnormed),
                                      f.beta, this->gradient(f, ln_gain),
                                      this->gradient(f, ln_bias), *f.compute_stream);
}

template class half_block<float>;
template class half_block<double>;

} // namespace troupe
