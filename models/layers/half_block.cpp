#include "models/layers/half_block.hpp"

#include "kernels/arrays.hpp"
#include "kernels/bias.hpp"
#include "kernels/layer_norm.hpp"
#include "kernels/matmul.hpp"

#include <utility>

namespace troupe {

template <class Scalar>
half_block<Scalar>::half_block(const gpt_shape& dims, std::vector<parameter> parameters)
  : layer<Scalar>(std::move(parameters), dims.positions() * dims.width,
                  dims.positions() * dims.width),
    dims_(dims),
    up_(this->parameters()[up].dims[1]),
    down_(this->parameters()[down].dims[0]) {
  // nop
}

/// Where everything lies in a frame: own rows Ro of what goes in and out, R else.
template <class Scalar>
struct half_block<Scalar>::frame_arrays {
  matrix<const Scalar> x, dy; // (Ro, C)
  // saved
  matrix<Scalar> normed; // the norm's output (Ro, C)
  Scalar *mean, *rstd;   // (Ro)
  inner_arrays inner;
  /// What goes into the collectives of a forward and comes out of them (R, C).
  matrix<Scalar> branch;
  // kept
  matrix<Scalar> dwide;   // (R, U)
  matrix<Scalar> dnormed; // (R, C)
  /// By sequence dy and the norm's output of all, side by side so that one gather
  /// brings both (R, 2C).
  matrix<Scalar> gathered;
  // what the weight gradients take
  matrix<const Scalar> all_dy, all_normed; // (R, C)
};

template <class Scalar>
typename half_block<Scalar>::frame_arrays
half_block<Scalar>::arrays_of(const frame<Scalar>& f) const {
  const auto rows = dims_.rows(f.samples), own = dims_.own_rows(f.samples);
  const auto width = dims_.width, all = padded(rows * width);
  auto* const mean = f.saved + padded(own * width);
  auto* const rstd = mean + padded(own);
  auto* const wide = rstd + padded(own);
  auto* const narrow = wide + padded(rows * up_);
  auto* const dnormed = f.kept + padded(rows * up_);
  frame_arrays a{.x = dense(f.x, own, width),
                 .dy = dense(f.dy, own, width),
                 .normed = dense(f.saved, own, width),
                 .mean = mean,
                 .rstd = rstd,
                 .inner = {dense(wide, rows, up_), dense(narrow, rows, down_),
                           narrow + padded(rows * down_),
                           f.scratch + (by_sequence() ? all : 0)},
                 .branch = dense(by_sequence() ? f.scratch : f.y, rows, width),
                 .dwide = dense(f.kept, rows, up_),
                 .dnormed = dense(dnormed, rows, width),
                 .gathered = dense(dnormed + all, rows, 2 * width),
                 .all_dy = dense(f.dy, own, width),
                 .all_normed = dense(f.saved, own, width)};
  if (by_sequence()) {
    a.all_dy = a.gathered.column_range(0, width);
    a.all_normed = a.gathered.column_range(width, width);
  }
  return a;
}

template <class Scalar>
layer_sizes half_block<Scalar>::sizes(std::int64_t samples, int threads) const {
  const auto rows = dims_.rows(samples), own = dims_.own_rows(samples);
  const auto all = padded(rows * dims_.width);
  return {.saved = padded(own * dims_.width) + 2 * padded(own) + padded(rows * up_)
                   + padded(rows * down_) + extra(samples),
          .kept = padded(rows * up_) + (by_sequence() ? 3 : 1) * all,
          .scratch = (by_sequence() ? all : 0) + space(samples, threads)};
}

template <class Scalar>
int half_block<Scalar>::pieces() const {
  if (by_sequence())
    return 3;
  return dims_.shard.count > 1 ? 2 : 1;
}

template <class Scalar>
shard_collective<Scalar> half_block<Scalar>::after(layer_pass pass, int piece,
                                                   const frame<Scalar>& f) const {
  using kind = typename shard_collective<Scalar>::kind;
  if (by_sequence() && pass == layer_pass::weight_gradient)
    return sum_of_norm(*this, ln_gain, ln_bias, f);
  if (piece + 1 >= pieces() || pass == layer_pass::weight_gradient)
    return {};
  const auto a = arrays_of(f);
  const bool forward = pass == layer_pass::forward;
  const auto values = dims_.rows(f.samples) * dims_.width;
  auto* const partial = forward ? a.branch.data : a.dnormed.data;
  if (piece == this->middle())
    return {by_sequence() ? kind::scatter : kind::sum, partial, values};
  if (forward)
    return {kind::gather, partial, values};
  return {kind::gather, a.gathered.data, 2 * values};
}

template <class Scalar>
void half_block<Scalar>::forward(const frame<Scalar>& f, int piece) const {
  const auto a = arrays_of(f);
  if (piece == 0)
    layer_norm<Scalar>::forward(a.x, this->weight(f, ln_gain), this->weight(f, ln_bias),
                                a.normed, a.mean, a.rstd, *f.on);
  if (piece < this->middle())
    arrays<Scalar>::copy(a.normed, dims_.own(a.branch), *f.on);
  if (piece == this->middle())
    up_and_down(f, a);
  if (piece > this->middle())
    end_branch(f, a);
}

template <class Scalar>
void half_block<Scalar>::up_and_down(const frame<Scalar>& f,
                                     const frame_arrays& a) const {
  inner_forward(f, by_sequence() ? a.branch : a.normed, a.inner);
  epilogue<Scalar> end;
  if (pieces() == 1)
    end = {.what = epilogue_kind::bias_residual,
           .bias = this->weight(f, down_bias),
           .x = a.x};
  matmul<Scalar>(a.inner.narrow, down_weight(f), 0, a.branch, *f.on, end);
}

template <class Scalar>
void half_block<Scalar>::end_branch(const frame<Scalar>& f,
                                    const frame_arrays& a) const {
  bias<Scalar>::add_with_residual(dims_.own(a.branch), this->weight(f, down_bias), a.x,
                                  dense(f.y, dims_.own_rows(f.samples), dims_.width),
                                  *f.on);
}

template <class Scalar>
void half_block<Scalar>::input_gradient(const frame<Scalar>& f, int piece) const {
  const auto a = arrays_of(f);
  if (piece < this->middle()) {
    const auto own = dims_.own(a.gathered);
    arrays<Scalar>::copy(a.dy, own.column_range(0, dims_.width), *f.on);
    arrays<Scalar>::copy(a.normed, own.column_range(dims_.width, dims_.width), *f.on);
  }
  if (piece == this->middle()) {
    inner_backward(f, a.all_dy, a.inner, a.dwide);
    matmul<Scalar>(a.dwide, up_weight(f).t(), 0, a.dnormed, *f.on);
  }
  if (piece + 1 == pieces())
    layer_norm<Scalar>::input_gradient(
      a.x, this->weight(f, ln_gain), a.mean, a.rstd, dims_.own(a.dnormed), a.dy,
      dense(f.dx, dims_.own_rows(f.samples), dims_.width), *f.on);
}

template <class Scalar>
void half_block<Scalar>::weight_gradient(const frame<Scalar>& f) const {
  const auto a = arrays_of(f);
  matmul<Scalar>(a.inner.narrow.t(), a.all_dy, f.beta,
                 dense(this->gradient(f, down), down_, dims_.width), *f.on);
  bias<Scalar>::gradient(a.all_dy, f.beta, this->gradient(f, down_bias), *f.on);
  matmul<Scalar>(a.all_normed.t(), a.dwide, f.beta,
                 dense(this->gradient(f, up), dims_.width, up_), *f.on);
  bias<Scalar>::gradient(a.dwide, f.beta, this->gradient(f, up_bias), *f.on);
  layer_norm<Scalar>::weight_gradient(a.x, a.mean, a.rstd, dims_.own(a.dnormed), f.beta,
                                      this->gradient(f, ln_gain),
                                      this->gradient(f, ln_bias), *f.on);
}

template class half_block<float>;
template class half_block<double>;

} // namespace troupe
