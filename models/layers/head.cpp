// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/arrays.hpp"
#include "kernels/cross_entropy.hpp"
#include "kernels/layer_norm.hpp"
#include "kernels/matmul.hpp"
#include "models/layers/gpt.hpp"

namespace troupe {

namespace {

// B samples, T tokens each, R = B T rows, width C, V words, of which a shard has some.
// By sequence a shard has the local rows of the norm and gathers the norm's output, as
// half_block does.
template <class Scalar>
class language_head : public layer<Scalar> {
public:
  explicit language_head(const gpt_shape& dims)
    : layer<Scalar>(
      multiplied({{"transformer.ln_f.weight", {dims.width}, beginning::ones},
                  {"transformer.ln_f.bias", {dims.width}, beginning::zeros},
                  words_of(dims)},
                 {word}),
      {dims.positions() * dims.width, dims.stored},
      {dims.length * dims.shard.part(dims.words)}),
      dims_(dims),
      words_(dims.shard.part(dims.words)) {
    // nop
  }

  layer_sizes sizes(std::int64_t samples, int) const override {
    return arrays_of({.samples = samples}).sizes;
  }

  double operations() const override {
    return 2.0 * static_cast<double>(dims_.length * dims_.width * words_);
  }

  precision loss_gradient() const override { return dims_.stored; }

  int pieces() const override {
    return dims_.shard.by_sequence ? 3 : dims_.shard.count > 1 ? 2 : 1;
  }

  shard_collective<Scalar> collective_after(layer_pass pass, int piece,
                                            const frame<Scalar>& f) const override {
    using kind = typename shard_collective<Scalar>::kind;
    const bool by_sequence = dims_.shard.by_sequence;
    const auto values = dims_.rows(f.samples) * dims_.width;
    if (pass == layer_pass::weight_gradient && by_sequence)
      return sum_of_norm(*this, gain, shift, f);
    if (piece + 1 >= pieces() || pass == layer_pass::weight_gradient)
      return {};
    const auto a = arrays_of(f);
    if (piece < this->middle())
      return {kind::gather, static_cast<Scalar*>(all_normed(a, pass).data),
              stored_size<Scalar>(values, dims_.stored)};
    if (pass == layer_pass::forward)
      return {};
    return {by_sequence ? kind::scatter : kind::sum, a.dnormed.data, values};
  }

  void forward(const frame<Scalar>& f, int piece) const override {
    const auto a = arrays_of(f);
    if (piece == 0)
      layer_norm<Scalar>::forward(a.x, this->weight(f, gain), this->weight(f, shift),
                                  a.normed, a.mean, a.rstd, *f.compute_stream);
    if (piece < this->middle())
      hand_out_normed(a, layer_pass::forward, f);
    if (piece == this->middle())
      matmul<Scalar>(all_normed(a, layer_pass::forward), words(f).t(), 0,
                     this->y(f, dims_.rows(f.samples)), *f.compute_stream);
  }

  void input_gradient(const frame<Scalar>& f, int piece) const override {
    const auto a = arrays_of(f);
    if (piece < this->middle())
      hand_out_normed(a, layer_pass::input_gradient, f);
    if (piece == this->middle())
      matmul<Scalar>(dlogits(f), words(f), 0, a.dnormed, *f.compute_stream);
    if (f.dx != nullptr && piece + 1 == pieces())
      layer_norm<Scalar>::input_gradient(a.x, this->weight(f, gain), a.mean, a.rstd,
                                         dims_.local_part(a.dnormed), {},
                                         this->dx(f, a.x.rows), *f.compute_stream);
  }

  void weight_gradient(const frame<Scalar>& f) const override {
    const auto a = arrays_of(f);
    matmul<Scalar>(dlogits(f).t(), all_normed(a, layer_pass::weight_gradient), f.beta,
                   dense(this->gradient(f, word), words_, dims_.width),
                   *f.compute_stream);
    layer_norm<Scalar>::weight_gradient(
      a.x, a.mean, a.rstd, dims_.local_part(a.dnormed), f.beta, this->gradient(f, gain),
      this->gradient(f, shift), *f.compute_stream);
  }

private:
  enum : std::size_t { gain, shift, word };

  struct frame_arrays {
    stored_matrix<const Scalar> x; // local rows (Ro, C)
    // saved, of local rows: ln_f's output (Ro, C), mean and rstd (Ro)
    stored_matrix<Scalar> normed;
    Scalar *mean, *rstd;
    matrix<Scalar> dnormed; // kept: the gradient of ln_f's output, of all rows (R, C)
    // ln_f's output of all rows: gathered in a forward, and again in a backward.
    stored_matrix<Scalar> gathered, gathered_again;
    layer_sizes sizes;
  };

  frame_arrays arrays_of(const frame<Scalar>& f) const {
    const auto rows = dims_.rows(f.samples), local_rows = dims_.local_rows(f.samples);
    const auto width = dims_.width;
    array_layout<Scalar> saved{f.saved}, kept{f.kept}, scratch{f.scratch};
    frame_arrays a{.x = this->x(f, local_rows),
                   .normed = saved.allocate(local_rows, width, dims_.stored),
                   .mean = saved.allocate(local_rows),
                   .rstd = saved.allocate(local_rows),
                   .dnormed = dense(kept.allocate(rows * width), rows, width)};
    a.gathered = a.gathered_again = a.normed;
    if (dims_.shard.by_sequence) {
      a.gathered = scratch.allocate(rows, width, dims_.stored);
      a.gathered_again = kept.allocate(rows, width, dims_.stored);
    }
    a.sizes = {.saved = saved.end(), .kept = kept.end(), .scratch = scratch.end()};
    return a;
  }

  static const stored_matrix<Scalar>& all_normed(const frame_arrays& a,
                                                 layer_pass pass) {
    return pass == layer_pass::forward ? a.gathered : a.gathered_again;
  }

  void hand_out_normed(const frame_arrays& a, layer_pass pass,
                       const frame<Scalar>& f) const {
    arrays<Scalar>::copy(a.normed, dims_.local_part(all_normed(a, pass)),
                         *f.compute_stream);
  }

  stored_matrix<const Scalar> dlogits(const frame<Scalar>& f) const {
    return gradient_of_logits(
      dense(static_cast<const Scalar*>(f.dy), dims_.rows(f.samples), words_),
      dims_.stored);
  }

  typename layer<Scalar>::factor words(const frame<Scalar>& f) const {
    return this->factor_of(f, word);
  }

  static parameter words_of(const gpt_shape& dims) {
    parameter whole{
      "lm_head.weight", {dims.words, dims.width}, beginning::normal, dims.deviation};
    if (dims.tied)
      whole.tied_to = "transformer.wte.weight";
    return part_of(std::move(whole), {"words", 0}, dims.shard);
  }

  gpt_shape dims_;
  std::int64_t words_; // of the shard
};

} // namespace

template <class Scalar>
std::shared_ptr<const layer<Scalar>> head_layer(const gpt_shape& dims) {
  return std::make_shared<language_head<Scalar>>(dims);
}

template std::shared_ptr<const layer<float>> head_layer<float>(const gpt_shape&);
template std::shared_ptr<const layer<double>> head_layer<double>(const gpt_shape&);

} // namespace troupe
