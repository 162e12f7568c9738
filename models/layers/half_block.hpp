#pragma once

#include "kernels/bias.hpp"
#include "kernels/layer_norm.hpp"
#include "kernels/matmul.hpp"
#include "models/layers/gpt.hpp"

#include <utility>
#include <vector>

namespace troupe {

/// Half a block: y = x + down(inner(up(norm(x)))), where up and down are linear layers
/// and `inner` is what the half is for. B samples, T tokens each, R = B T rows, width
/// C; U columns out of up, and N into down, of which a shard has some.
///
///   whole            norm          up  inner  down           + bias + x
///   tensor shard     norm          up  inner  down  sum      + bias + x
///   by sequence      norm  gather  up  inner  down  scatter  + bias + x
///                    own rows      all rows                  own rows
///
/// The backward is the mirror. By sequence only a shard's own rows of the norm's output
/// are kept, and its backward gathers them again together with dy.
template <class Scalar>
class half_block : public layer<Scalar> {
public:
  layer_sizes sizes(std::int64_t samples, int threads) const override {
    const auto rows = dims_.rows(samples), own = dims_.own_rows(samples);
    return {.saved = padded(own * dims_.width) + 2 * padded(own) + padded(rows * up_)
                     + padded(rows * down_) + extra(samples),
            .kept = padded(rows * up_) + (by_sequence() ? 3 : 1) * all_rows(samples),
            .scratch =
              (by_sequence() ? all_rows(samples) : 0) + space(samples, threads)};
  }

  int pieces() const override {
    return by_sequence() ? 3 : dims_.shard.count > 1 ? 2 : 1;
  }

  shard_collective<Scalar> after(layer_pass pass, int piece,
                                 const frame<Scalar>& f) const override {
    using kind = typename shard_collective<Scalar>::kind;
    if (by_sequence() && pass == layer_pass::weight_gradient)
      return sum_of_norm(*this, ln_gain, ln_bias, f);
    if (piece + 1 >= pieces() || pass == layer_pass::weight_gradient)
      return {};
    const auto values = dims_.rows(f.samples) * dims_.width;
    auto* const partial = (pass == layer_pass::forward ? branch(f) : dnormed(f)).data;
    if (piece == this->middle())
      return {by_sequence() ? kind::scatter : kind::sum, partial, values};
    if (pass == layer_pass::forward)
      return {kind::gather, partial, values};
    return {kind::gather, gathered(f).data, 2 * values};
  }

  void forward(const frame<Scalar>& f, int piece) const override {
    const auto normed = own_normed(f);
    if (piece == 0)
      layer_norm<Scalar>::forward(x(f), this->weight(f, ln_gain),
                                  this->weight(f, ln_bias), normed, mean(f), rstd(f),
                                  *f.threads);
    if (piece < this->middle())
      copy_rows<Scalar>(normed, dims_.own(branch(f)));
    if (piece == this->middle())
      up_and_down(f, by_sequence() ? branch(f) : normed);
    if (piece > this->middle())
      end_branch(f);
  }

  void input_gradient(const frame<Scalar>& f, int piece) const override {
    if (piece < this->middle()) {
      const auto own = dims_.own(gathered(f));
      copy_rows<Scalar>(dy(f), own.column_range(0, dims_.width));
      copy_rows<Scalar>(own_normed(f), own.column_range(dims_.width, dims_.width));
    }
    if (piece == this->middle()) {
      inner_backward(f, all_dy(f), inner_of(f), dwide(f));
      matmul<Scalar>(dwide(f), up_weight(f).t(), 0, dnormed(f), *f.threads);
    }
    if (piece + 1 == pieces())
      layer_norm<Scalar>::input_gradient(
        x(f), this->weight(f, ln_gain), mean(f), rstd(f), dims_.own(dnormed(f)), dy(f),
        dense(f.dx, dims_.own_rows(f.samples), dims_.width), *f.threads);
  }

  void weight_gradient(const frame<Scalar>& f) const override {
    const auto normed = by_sequence()
                          ? gathered(f).column_range(dims_.width, dims_.width)
                          : own_normed(f);
    matmul<Scalar>(inner_of(f).narrow.t(), all_dy(f), f.beta,
                   dense(this->gradient(f, down), down_, dims_.width), *f.threads);
    bias<Scalar>::gradient(all_dy(f), f.beta, this->gradient(f, down_bias), *f.threads);
    matmul<Scalar>(normed.t(), dwide(f), f.beta,
                   dense(this->gradient(f, up), dims_.width, up_), *f.threads);
    bias<Scalar>::gradient(dwide(f), f.beta, this->gradient(f, up_bias), *f.threads);
    layer_norm<Scalar>::weight_gradient(x(f), mean(f), rstd(f), dims_.own(dnormed(f)),
                                        f.beta, this->gradient(f, ln_gain),
                                        this->gradient(f, ln_bias), *f.threads);
  }

protected:
  /// The order of the parameters.
  enum : std::size_t { ln_gain, ln_bias, up, up_bias, down, down_bias };

  /// What lies between the two linear layers, and is saved.
  struct inner_arrays {
    matrix<Scalar> wide;   ///< up's output (R, U)
    matrix<Scalar> narrow; ///< down's input (R, N)
    Scalar* extra;
    Scalar* space;
  };

  half_block(const gpt_shape& dims, std::vector<parameter> parameters)
    : layer<Scalar>(std::move(parameters), dims.positions() * dims.width,
                    dims.positions() * dims.width),
      dims_(dims),
      up_(this->parameters()[up].dims[1]),
      down_(this->parameters()[down].dims[0]) {
    // nop
  }

  const gpt_shape& dims() const { return dims_; }

  matrix<const Scalar> up_weight(const frame<Scalar>& f) const {
    return dense(this->weight(f, up), dims_.width, up_);
  }

  matrix<const Scalar> down_weight(const frame<Scalar>& f) const {
    return dense(this->weight(f, down), down_, dims_.width);
  }

private:
  /// Values that it saves besides, and uses during a pass.
  virtual std::int64_t extra(std::int64_t) const { return 0; }
  virtual std::int64_t space(std::int64_t, int) const { return 0; }

  /// Makes `wide` of all rows of the norm's output, and `narrow` of that.
  virtual void inner_forward(const frame<Scalar>& f, matrix<const Scalar> normed,
                             const inner_arrays& to) const = 0;

  /// Makes the gradient of `wide` of dy.
  virtual void inner_backward(const frame<Scalar>& f, matrix<const Scalar> dy,
                              const inner_arrays& of, matrix<Scalar> dwide) const = 0;

  void up_and_down(const frame<Scalar>& f, matrix<const Scalar> normed) const {
    const auto inner = inner_of(f);
    inner_forward(f, normed, inner);
    if (pieces() > 1)
      return matmul<Scalar>(inner.narrow, down_weight(f), 0, branch(f), *f.threads);
    matmul<Scalar>(inner.narrow, down_weight(f), 0, branch(f), *f.threads,
                   [&](std::int64_t row, std::int64_t column, matrix<Scalar> part) {
                     bias<Scalar>::add_with_residual(
                       part, this->weight(f, down_bias) + column,
                       x(f).part(row, column, part));
                   });
  }

  void end_branch(const frame<Scalar>& f) const {
    const auto rows = dims_.own_rows(f.samples);
    const auto y = dense(f.y, rows, dims_.width), sums = dims_.own(branch(f));
    f.threads->run_ranges(rows, 16, [&](std::int64_t first, std::int64_t last, int) {
      const auto part = y.row_range(first, last - first);
      if (by_sequence())
        copy_rows<Scalar>(sums.row_range(first, last - first), part);
      bias<Scalar>::add_with_residual(part, this->weight(f, down_bias),
                                      x(f).row_range(first, last - first));
    });
  }

  bool by_sequence() const { return dims_.shard.by_sequence; }

  /// Values of (R, C).
  std::int64_t all_rows(std::int64_t samples) const {
    return padded(dims_.rows(samples) * dims_.width);
  }

  // Of the rows that go in and come out.
  matrix<const Scalar> x(const frame<Scalar>& f) const {
    return dense(f.x, dims_.own_rows(f.samples), dims_.width);
  }

  matrix<const Scalar> dy(const frame<Scalar>& f) const {
    return dense(f.dy, dims_.own_rows(f.samples), dims_.width);
  }

  // saved: the norm's output, mean and rstd of those rows; then what is between.
  matrix<Scalar> own_normed(const frame<Scalar>& f) const {
    return dense(f.saved, dims_.own_rows(f.samples), dims_.width);
  }

  Scalar* mean(const frame<Scalar>& f) const {
    return f.saved + padded(dims_.own_rows(f.samples) * dims_.width);
  }

  Scalar* rstd(const frame<Scalar>& f) const {
    return mean(f) + padded(dims_.own_rows(f.samples));
  }

  inner_arrays inner_of(const frame<Scalar>& f) const {
    const auto rows = dims_.rows(f.samples);
    auto* const wide = rstd(f) + padded(dims_.own_rows(f.samples));
    auto* const narrow = wide + padded(rows * up_);
    return {dense(wide, rows, up_), dense(narrow, rows, down_),
            narrow + padded(rows * down_),
            f.scratch + (by_sequence() ? all_rows(f.samples) : 0)};
  }

  /// What goes into the branch's collectives and comes out, all rows (R, C).
  matrix<Scalar> branch(const frame<Scalar>& f) const {
    return dense(by_sequence() ? f.scratch : f.y, dims_.rows(f.samples), dims_.width);
  }

  // kept: the gradients of up's output (R, U) and of the norm's (R, C); by sequence dy
  // and the norm's output, side by side, so that one gather brings both (R, 2C).
  matrix<Scalar> dwide(const frame<Scalar>& f) const {
    return dense(f.kept, dims_.rows(f.samples), up_);
  }

  matrix<Scalar> dnormed(const frame<Scalar>& f) const {
    const auto rows = dims_.rows(f.samples);
    return dense(f.kept + padded(rows * up_), rows, dims_.width);
  }

  matrix<Scalar> gathered(const frame<Scalar>& f) const {
    return dense(dnormed(f).data + all_rows(f.samples), dims_.rows(f.samples),
                 2 * dims_.width);
  }

  matrix<const Scalar> all_dy(const frame<Scalar>& f) const {
    if (by_sequence())
      return gathered(f).column_range(0, dims_.width);
    return dy(f);
  }

  gpt_shape dims_;
  std::int64_t up_;   // U
  std::int64_t down_; // N
};

} // namespace troupe
