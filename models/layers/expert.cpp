// SPDX-License-Identifier: BSD-3-Clause
#include "models/layers/expert.hpp"

#include "kernels/arrays.hpp"
#include "kernels/bias.hpp"
#include "kernels/matmul.hpp"

namespace troupe {

namespace {

// R rows, width C, F = 4C columns between the two products.
template <class Scalar>
class expert_network : public layer<Scalar> {
public:
  expert_network(const gpt_shape& dims, const std::string& name)
    : layer<Scalar>(multiplied(parameters_of(dims, name), {up, down}), {dims.width},
                    {dims.width}),
      width_(dims.width),
      hidden_(4 * dims.width),
      stored_(dims.stored) {
    // nop
  }

  layer_sizes sizes(std::int64_t rows, int) const override {
    return arrays_of({.samples = rows}).sizes;
  }

  double operations() const override {
    return 4 * static_cast<double>(width_ * hidden_);
  }

  void forward(const frame<Scalar>& f, int) const override {
    if (f.samples == 0)
      return;
    const auto a = arrays_of(f);
    matmul<Scalar>(this->x(f, f.samples), up_weight(f), 0, a.wide, *f.compute_stream,
                   {.kind = epilogue_kind::bias_gelu,
                    .bias = this->weight(f, up_bias),
                    .y = a.gelu});
    matmul<Scalar>(a.gelu, down_weight(f), 0, this->y(f, f.samples), *f.compute_stream,
                   {.kind = epilogue_kind::bias, .bias = this->weight(f, down_bias)});
  }

  void input_gradient(const frame<Scalar>& f, int) const override {
    if (f.samples == 0)
      return;
    const auto a = arrays_of(f);
    matmul<Scalar>(this->dy(f, f.samples), down_weight(f).t(), 0, a.dwide,
                   *f.compute_stream,
                   {.kind = epilogue_kind::gelu_gradient, .x = a.wide});
    matmul<Scalar>(a.dwide, up_weight(f).t(), 0, this->dx(f, f.samples),
                   *f.compute_stream);
  }

  void weight_gradient(const frame<Scalar>& f) const override {
    if (f.samples == 0) {
      if (f.beta == 0)
        arrays<Scalar>::clear(this->bucket(), f.gradients, *f.compute_stream);
      return;
    }
    const auto a = arrays_of(f);
    const auto dy = this->dy(f, f.samples);
    matmul<Scalar>(a.gelu.t(), dy, f.beta,
                   dense(this->gradient(f, down), hidden_, width_), *f.compute_stream);
    bias<Scalar>::gradient(dy, f.beta, this->gradient(f, down_bias), *f.compute_stream);
    matmul<Scalar>(this->x(f, f.samples).t(), a.dwide, f.beta,
                   dense(this->gradient(f, up), width_, hidden_), *f.compute_stream);
    bias<Scalar>::gradient(a.dwide, f.beta, this->gradient(f, up_bias),
                           *f.compute_stream);
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
    for (auto& p : result) // whole parameters, but not held by every shard
      p = only_part_of(std::move(p));
    return result;
  }

  struct frame_arrays {
    // saved: what the GELU's gradient reads, and the GELU's output (R, F)
    stored_matrix<Scalar> wide, gelu;
    stored_matrix<Scalar> dwide; // kept: the gradient of c_fc's output (R, F)
    layer_sizes sizes;
  };

  frame_arrays arrays_of(const frame<Scalar>& f) const {
    array_layout<Scalar> saved{f.saved}, kept{f.kept};
    frame_arrays a{.wide = saved.allocate(f.samples, hidden_, stored_),
                   .gelu = saved.allocate(f.samples, hidden_, stored_),
                   .dwide = kept.allocate(f.samples, hidden_, stored_)};
    a.sizes = {.saved = saved.end(), .kept = kept.end()};
    return a;
  }

  typename layer<Scalar>::factor up_weight(const frame<Scalar>& f) const {
    return this->factor_of(f, up);
  }

  typename layer<Scalar>::factor down_weight(const frame<Scalar>& f) const {
    return this->factor_of(f, down);
  }

  std::int64_t width_;
  std::int64_t hidden_;
  precision stored_;
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
