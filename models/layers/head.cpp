#include "kernels/layer_norm.hpp"
#include "kernels/matmul.hpp"
#include "models/layers/gpt.hpp"

namespace troupe {

namespace {

// B samples, T tokens each, R = B T rows, width C, V words.
template <class Scalar>
class language_head : public layer<Scalar> {
public:
  explicit language_head(const gpt_shape& dims)
    : layer<Scalar>(
      {{"transformer.ln_f.weight", {dims.width}, beginning::ones},
       {"transformer.ln_f.bias", {dims.width}, beginning::zeros},
       {"lm_head.weight", {dims.words, dims.width}, beginning::normal, 0.02}},
      dims.length * dims.width, dims.length * dims.words),
      dims_(dims) {
    // nop
  }

  layer_sizes sizes(std::int64_t samples, int) const override {
    const auto rows = samples * dims_.length;
    return {.saved = padded(rows * dims_.width) + 2 * padded(rows),
            .kept = padded(rows * dims_.width)};
  }

  double operations() const override {
    return 2.0 * static_cast<double>(dims_.length * dims_.width * dims_.words);
  }

  void forward(const frame<Scalar>& f) const override {
    const auto rows = f.samples * dims_.length;
    layer_norm<Scalar>::forward(dense(f.x, rows, dims_.width), this->weight(f, gain),
                                this->weight(f, shift), normed(f), mean(f), rstd(f),
                                *f.threads);
    matmul<Scalar>(normed(f), words(f).t(), 0, dense(f.y, rows, dims_.words),
                   *f.threads);
  }

  void input_gradient(const frame<Scalar>& f) const override {
    const auto rows = f.samples * dims_.length;
    matmul<Scalar>(dense(f.dy, rows, dims_.words), words(f), 0, dnormed(f), *f.threads);
    if (f.dx != nullptr)
      layer_norm<Scalar>::input_gradient(
        dense(f.x, rows, dims_.width), this->weight(f, gain), mean(f), rstd(f),
        dnormed(f), dense<const Scalar>(nullptr, rows, dims_.width),
        dense(f.dx, rows, dims_.width), *f.threads);
  }

  void weight_gradient(const frame<Scalar>& f) const override {
    const auto rows = f.samples * dims_.length;
    matmul<Scalar>(dense(f.dy, rows, dims_.words).t(), normed(f), f.beta,
                   dense(this->gradient(f, word), dims_.words, dims_.width),
                   *f.threads);
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
    return dense(this->weight(f, word), dims_.words, dims_.width);
  }

  gpt_shape dims_;
};

} // namespace

template <class Scalar>
std::shared_ptr<const layer<Scalar>> head_layer(const gpt_shape& dims) {
  return std::make_shared<language_head<Scalar>>(dims);
}

template std::shared_ptr<const layer<float>> head_layer<float>(const gpt_shape&);
template std::shared_ptr<const layer<double>> head_layer<double>(const gpt_shape&);

} // namespace troupe
