#include "kernels/arrays.hpp"
#include "kernels/layer_norm.hpp"
#include "kernels/matmul.hpp"
#include "models/layers/gpt.hpp"

namespace troupe {

namespace {

// B samples, T tokens each, R = B T rows, width C, V words, of which a shard has some.
// By sequence it has its own rows of the norm and gathers its output, as half_block.
template <class Scalar>
class language_head : public layer<Scalar> {
public:
  explicit language_head(const gpt_shape& dims)
    : layer<Scalar>({{"transformer.ln_f.weight", {dims.width}, beginning::ones},
                     {"transformer.ln_f.bias", {dims.width}, beginning::zeros},
                     words_of(dims)},
                    dims.positions() * dims.width,
                    dims.length * dims.shard.part(dims.words)),
      dims_(dims),
      words_(dims.shard.part(dims.words)) {
    // nop
  }

  layer_sizes sizes(std::int64_t samples, int) const override {
    const auto own = dims_.own_rows(samples),
               all = padded(dims_.rows(samples) * dims_.width);
    const bool gathers = dims_.shard.by_sequence;
    return {.saved = padded(own * dims_.width) + 2 * padded(own),
            .kept = gathers ? 2 * all : all,
            .scratch = gathers ? all : 0};
  }

  double operations() const override {
    return 2.0 * static_cast<double>(dims_.length * dims_.width * words_);
  }

  int pieces() const override {
    return dims_.shard.by_sequence ? 3 : dims_.shard.count > 1 ? 2 : 1;
  }

  shard_collective<Scalar> after(layer_pass pass, int piece,
                                 const frame<Scalar>& f) const override {
    using kind = typename shard_collective<Scalar>::kind;
    const bool by_sequence = dims_.shard.by_sequence;
    const auto values = dims_.rows(f.samples) * dims_.width;
    if (pass == layer_pass::weight_gradient && by_sequence)
      return sum_of_norm(*this, gain, shift, f);
    if (piece + 1 >= pieces() || pass == layer_pass::weight_gradient)
      return {};
    if (piece < this->middle())
      return {kind::gather, all_normed(pass, f).data, values};
    if (pass == layer_pass::forward)
      return {};
    return {by_sequence ? kind::scatter : kind::sum, dnormed(f).data, values};
  }

  void forward(const frame<Scalar>& f, int piece) const override {
    if (piece == 0)
      layer_norm<Scalar>::forward(x(f), this->weight(f, gain), this->weight(f, shift),
                                  normed(f), mean(f), rstd(f), *f.on);
    if (piece < this->middle())
      hand_out_normed(layer_pass::forward, f);
    if (piece == this->middle())
      matmul<Scalar>(all_normed(layer_pass::forward, f), words(f).t(), 0,
                     dense(f.y, dims_.rows(f.samples), words_), *f.on);
  }

  void input_gradient(const frame<Scalar>& f, int piece) const override {
    if (piece < this->middle())
      hand_out_normed(layer_pass::input_gradient, f);
    if (piece == this->middle())
      matmul<Scalar>(dlogits(f), words(f), 0, dnormed(f), *f.on);
    if (f.dx != nullptr && piece + 1 == pieces())
      layer_norm<Scalar>::input_gradient(
        x(f), this->weight(f, gain), mean(f), rstd(f), dims_.own(dnormed(f)),
        dense<const Scalar>(nullptr, x(f).rows, dims_.width),
        dense(f.dx, x(f).rows, dims_.width), *f.on);
  }

  void weight_gradient(const frame<Scalar>& f) const override {
    matmul<Scalar>(dlogits(f).t(), all_normed(layer_pass::weight_gradient, f), f.beta,
                   dense(this->gradient(f, word), words_, dims_.width), *f.on);
    layer_norm<Scalar>::weight_gradient(x(f), mean(f), rstd(f), dims_.own(dnormed(f)),
                                        f.beta, this->gradient(f, gain),
                                        this->gradient(f, shift), *f.on);
  }

private:
  enum : std::size_t { gain, shift, word };

  matrix<const Scalar> x(const frame<Scalar>& f) const {
    return dense(f.x, dims_.own_rows(f.samples), dims_.width);
  }

  matrix<const Scalar> dlogits(const frame<Scalar>& f) const {
    return dense(f.dy, dims_.rows(f.samples), words_);
  }

  // saved, of own rows: ln_f's output (R, C), mean and rstd (R); kept: the gradient of
  // all that output.
  matrix<Scalar> normed(const frame<Scalar>& f) const {
    return dense(f.saved, dims_.own_rows(f.samples), dims_.width);
  }

  matrix<Scalar> dnormed(const frame<Scalar>& f) const {
    return dense(f.kept, dims_.rows(f.samples), dims_.width);
  }

  Scalar* mean(const frame<Scalar>& f) const {
    return f.saved + padded(dims_.own_rows(f.samples) * dims_.width);
  }

  Scalar* rstd(const frame<Scalar>& f) const {
    return mean(f) + padded(dims_.own_rows(f.samples));
  }

  /// ln_f's output of all rows: gathered in a forward, and again in a backward.
  matrix<Scalar> all_normed(layer_pass pass, const frame<Scalar>& f) const {
    if (!dims_.shard.by_sequence)
      return normed(f);
    const auto rows = dims_.rows(f.samples);
    return dense(pass == layer_pass::forward ? f.scratch
                                             : f.kept + padded(rows * dims_.width),
                 rows, dims_.width);
  }

  void hand_out_normed(layer_pass pass, const frame<Scalar>& f) const {
    arrays<Scalar>::copy(normed(f), dims_.own(all_normed(pass, f)), *f.on);
  }

  matrix<const Scalar> words(const frame<Scalar>& f) const {
    return dense(this->weight(f, word), words_, dims_.width);
  }

  static parameter words_of(const gpt_shape& dims) {
    parameter whole{
      "lm_head.weight", {dims.words, dims.width}, beginning::normal, dims.deviation};
    if (dims.tied)
      whole.tied_to = "transformer.wte.weight";
    return dims.shard.count == 1 ? whole : rows_of(whole, dims.shard);
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
