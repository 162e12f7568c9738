// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/matmul.hpp"
#include "models/layers/half_block.hpp"

#include <string>
#include <utility>

namespace troupe {

namespace {

// Of 4C hidden units a shard has F. `wide` is what the GELU's gradient reads and
// `narrow` the GELU's output, both (R, F).
template <class Scalar>
class feed_forward_half : public half_block<Scalar> {
  using half = half_block<Scalar>;
  using inner_arrays = typename half::inner_arrays;

public:
  feed_forward_half(const gpt_shape& dims, int number)
    : half(dims, parameters_of(dims, number)) {
    // nop
  }

  double operations() const override {
    const auto& dims = this->dims();
    return static_cast<double>(dims.length) * 4
           * static_cast<double>(dims.width * dims.shard.part(4 * dims.width));
  }

private:
  static std::vector<parameter> parameters_of(const gpt_shape& dims, int number) {
    const auto block = "transformer.h." + std::to_string(number) + ".";
    const auto width = dims.width;
    std::vector<parameter> whole{
      {block + "ln_2.weight", {width}, beginning::ones},
      {block + "ln_2.bias", {width}, beginning::zeros},
      {block + "mlp.c_fc.weight",
       {width, 4 * width},
       beginning::normal,
       dims.deviation},
      {block + "mlp.c_fc.bias", {4 * width}, beginning::zeros},
      {block + "mlp.c_proj.weight",
       {4 * width, width},
       beginning::normal,
       dims.residual_deviation()},
      {block + "mlp.c_proj.bias", {width}, beginning::zeros},
    };
    return half::divided(std::move(whole), "hidden", 1, 1, dims.shard);
  }

  void inner_forward(const frame<Scalar>& f, stored_matrix<const Scalar> normed,
                     const inner_arrays& to) const override {
    matmul<Scalar>(normed, this->up_weight(f), 0, to.wide, *f.compute_stream,
                   {.kind = epilogue_kind::bias_gelu,
                    .bias = this->weight(f, half::up_bias),
                    .y = to.narrow});
  }

  void inner_backward(const frame<Scalar>& f, stored_matrix<const Scalar> dy,
                      const inner_arrays& inner,
                      stored_matrix<Scalar> dwide) const override {
    matmul<Scalar>(dy, this->down_weight(f).t(), 0, dwide, *f.compute_stream,
                   {.kind = epilogue_kind::gelu_gradient, .x = inner.wide});
  }
};

} // namespace

template <class Scalar>
std::shared_ptr<const layer<Scalar>> feed_forward_layer(const gpt_shape& dims,
                                                        int number) {
  return std::make_shared<feed_forward_half<Scalar>>(dims, number);
}

template std::shared_ptr<const layer<float>> feed_forward_layer<float>(const gpt_shape&,
                                                                       int);
template std::shared_ptr<const layer<double>>
feed_forward_layer<double>(const gpt_shape&, int);

} // namespace troupe
