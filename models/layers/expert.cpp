#include "models/layers/expert.hpp"

#include "kernels/arrays.hpp"
#include "kernels/bias.hpp"
#include "kernels/matmul.hpp"

namespace troupe {

namespace {

// R rows, width C, F = 4C between the two products.
template <class Scalar>
class expert_network : public layer<Scalar> {
public:
  expert_network(const gpt_shape& dims, const std::string& name)
    : layer<Scalar>(parameters_of(dims, name), dims.width, dims.width),
      width_(dims.width),
      hidden_(4 * dims.width) {
    // nop
  }

  layer_sizes sizes(std::int64_t rows, int) const override {
    return {.saved = 2 * padded(rows * hidden_), .kept = padded(rows * hidden_)};
  }

  double operations() const override {
    return 4 * static_cast<double>(width_ * hidden_);
  }

  void forward(const frame<Scalar>& f, int) const override {
    if (f.samples == 0)
      return;
    const auto wide = dense(f.saved, f.samples, hidden_), activated = activated_of(f);
    matmul<Scalar>(dense(f.x, f.samples, width_), up_weight(f), 0, wide, *f.on,
                   {.what = epilogue_kind::bias_gelu,
                    .bias = this->weight(f, up_bias),
                    .y = activated});
    matmul<Scalar>(activated, down_weight(f), 0, dense(f.y, f.samples, width_), *f.on,
                   {.what = epilogue_kind::bias, .bias = this->weight(f, down_bias)});
  }

  void input_gradient(const frame<Scalar>& f, int) const override {
    if (f.samples == 0)
      return;
    const auto wide = dense<const Scalar>(f.saved, f.samples, hidden_);
    const auto dwide = dense(f.kept, f.samples, hidden_);
    matmul<Scalar>(dense(f.dy, f.samples, width_), down_weight(f).t(), 0, dwide, *f.on,
                   {.what = epilogue_kind::gelu_gradient, .x = wide});
    matmul<Scalar>(dwide, up_weight(f).t(), 0, dense(f.dx, f.samples, width_), *f.on);
  }

  void weight_gradient(const frame<Scalar>& f) const override {
    if (f.samples == 0) {
      if (f.beta == 0)
        arrays<Scalar>::clear(this->bucket(), f.gradients, *f.on);
      return;
    }
    const auto dy = dense(f.dy, f.samples, width_);
    const auto dwide = dense<const Scalar>(f.kept, f.samples, hidden_);
    matmul<Scalar>(activated_of(f).t(), dy, f.beta,
                   dense(this->gradient(f, down), hidden_, width_), *f.on);
    bias<Scalar>::gradient(dy, f.beta, this->gradient(f, down_bias), *f.on);
    matmul<Scalar>(dense(f.x, f.samples, width_).t(), dwide, f.beta,
                   dense(this->gradient(f, up), width_, hidden_), *f.on);
    bias<Scalar>::gradient(dwide, f.beta, this->gradient(f, up_bias), *f.on);
  }

private:
  enum : std::size_t { up, up_bias, down, down_bias };

  static std::vector<parameter> parameters_of(const gpt_shape& dims,
                                              const std::string& name) {
    const auto width = dims.width;
    std::vector<parameter> result{
      {name + "c_fc.weight", {width, 4 * width}, beginning::normal, dims.deviation},
      {name + "c_fc.bias", {4 * width}, beginning::zeros},
      {name + "c_proj.weight",
       {4 * width, width},
       beginning::normal,
       dims.residual_deviation()},
      {name + "c_proj.bias", {width}, beginning::zeros}};
    for (auto& p : result) // all of them, but not everybody's
      p = columns_of(p, {{0, p.dims.back()}});
    return result;
  }

  matrix<Scalar> activated_of(const frame<Scalar>& f) const {
    return dense(f.saved + padded(f.samples * hidden_), f.samples, hidden_);
  }

  matrix<const Scalar> up_weight(const frame<Scalar>& f) const {
    return dense(this->weight(f, up), width_, hidden_);
  }

  matrix<const Scalar> down_weight(const frame<Scalar>& f) const {
    return dense(this->weight(f, down), hidden_, width_);
  }

  std::int64_t width_;
  std::int64_t hidden_;
};

} // namespace

std::string expert_name(int block, int expert) {
  return "transformer.h." + std::to_string(block) + ".mlp.experts."
         + std::to_string(expert) + ".";
}

template <class Scalar>
std::shared_ptr<const layer<Scalar>> expert_layer(const gpt_shape& dims,
                                                  const std::string& name) {
  return std::make_shared<expert_network<Scalar>>(dims, name);
}

template std::shared_ptr<const layer<float>> expert_layer<float>(const gpt_shape&,
                                                                 const std::string&);
template std::shared_ptr<const layer<double>> expert_layer<double>(const gpt_shape&,
                                                                   const std::string&);

} // namespace troupe
