#include "kernels/layer_norm.hpp"
#include "kernels/matmul.hpp"
#include "models/layers/gpt.hpp"

namespace troupe {

namespace {

// B samples, T tokens each, R = B T rows, width C, V words, of which a shard has some.
template <class Scalar>
class language_head : public layer<Scalar> {
public:
  explicit language_head(const gpt_shape& dims)
    : layer<Scalar>({{"transformer.ln_f.weight", {dims.width}, beginning::ones},
                     {"transformer.ln_f.bias", {dims.width}, beginning::zeros},
                     words_of(dims)},
                    dims.length * dims.width,
                    dims.length * dims.shard.part(dims.words)),
      dims_(dims),
      words_(dims.shard.part(dims.words)) {
    // nop
  }

  layer_sizes sizes(std::int64_t samples, int) const override {
    const auto rows = samples * dims_.length;
    return {.saved = padded(rows * dims_.width) + 2 * padded(rows),
            .kept = padded(rows * dims_.width)};
  }

  double operations() const override {
    return 2.0 * static_cast<double>(dims_.length * dims_.width * words_);
  }

  int pieces() const override { return dims_.shard.count > 1 ? 2 : 1; }

  shard_collective<Scalar> after(layer_pass pass, int piece,
                                 const frame<Scalar>& f) const override {
    if (pieces() == 1 || piece > 0 || pass == layer_pass::forward)
      return {};
    return {shard_collective<Scalar>::kind::sum, f.kept,
            f.samples * dims_.length * dims_.width};
  }

  void forward(const frame<Scalar>& f, int piece) const override {
    if (piece > 0)
      return;
    const auto rows = f.samples * dims_.length;
    layer_norm<Scalar>::forward(dense(f.x, rows, dims_.width), this->weight(f, gain),
                                this->weight(f, shift), normed(f), mean(f), rstd(f),
                                *f.threads);
    matmul<Scalar>(normed(f), words(f).t(), 0, dense(f.y, rows, words_), *f.threads);
  }

  void input_gradient(const frame<Scalar>& f, int piece) const override {
    const auto rows = f.samples * dims_.length;
    if (piece == 0)
      matmul<Scalar>(dense(f.dy, rows, words_), words(f), 0, dnormed(f), *f.threads);
    if (f.dx != nullptr && piece + 1 == pieces())
      layer_norm<Scalar>::input_gradient(
        dense(f.x, rows, dims_.width), this->weight(f, gain), mean(f), rstd(f),
        dnormed(f), dense<const Scalar>(nullptr, rows, dims_.width),
        dense(f.dx, rows, dims_.width), *f.threads);
  }

  void weight_gradient(const frame<Scalar>& f) const override {
    const auto rows = f.samples * dims_.length;
    matmul<Scalar>(dense(f.dy, rows, words_).t(), normed(f), f.beta,
                   dense(this->gradient(f, word), words_, dims_.width), *f.threads);
    layer_norm<Scalar>::weight_gradient(dense(f.x, rows, dims_.width), mean(f), rstd(f),
                                        dnormed(f), f.beta, this->gradient(f, gain),
                                        this->gradient(f, shift), *f.threads);
  }

private:
  enum : std::size_t { gain, shift, word };

  // saved: ln_f's output (R, C), mean and rstd (R); kept: the gradient of that output.
  matrix<Scalar> normed(const frame<Scalar>& f) const {
    return dense(f.saved, f.samples * dims_.length, dims_.width);
  }

  matrix<Scalar> dnormed(const frame<Scalar>& f) const {
    return dense(f.kept, f.samples * dims_.length, dims_.width);
  }

  Scalar* mean(const frame<Scalar>& f) const {
    return f.saved + padded(f.samples * dims_.length * dims_.width);
  }

  Scalar* rstd(const frame<Scalar>& f) const {
    return mean(f) + padded(f.samples * dims_.length);
  }

  matrix<const Scalar> words(const frame<Scalar>& f) const {
    return dense(this->weight(f, word), words_, dims_.width);
  }

  static parameter words_of(const gpt_shape& dims) {
    const parameter whole{
      "lm_head.weight", {dims.words, dims.width}, beginning::normal, 0.02};
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
