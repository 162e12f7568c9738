// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/attention.hpp"

#include "kernels/key_value_cache.hpp"
#include "kernels/matmul.hpp"
#include "models/layers/half_block.hpp"

#include <string>
#include <utility>

namespace troupe {

namespace {

// `wide` has queries, keys and values, (R, 3Cs). Of H heads a shard has some, which
// together are Cs = C / shards wide. `narrow` is the output of attention (R, Cs).
template <class Scalar>
class attention_half : public half_block<Scalar> {
  using half = half_block<Scalar>;
  using inner_arrays = typename half::inner_arrays;

public:
  attention_half(const gpt_shape& dims, int number)
    : half(dims, parameters_of(dims, number)),
      heads_(dims.shard.part(dims.heads)),
      inner_(heads_ * (dims.width / dims.heads)) {
    // nop
  }

  double operations() const override {
    const auto t = static_cast<double>(this->dims().length),
               c = static_cast<double>(this->dims().width),
               cs = static_cast<double>(inner_);
    return t * (8 * c * cs + 2 * t * cs); // products of 3Cs + Cs columns; causal
  }

  std::int64_t cached_values() const override {
    return key_value_cache<Scalar>::values(this->dims().known_positions(), heads_,
                                           inner_);
  }

private:
  static std::vector<parameter> parameters_of(const gpt_shape& dims, int number) {
    const auto block = "transformer.h." + std::to_string(number) + ".";
    const auto width = dims.width, size = width / dims.heads;
    std::vector<parameter> whole{
      {block + "ln_1.weight", {width}, beginning::ones},
      {block + "ln_1.bias", {width}, beginning::zeros},
      {block + "attn.c_attn.weight",
       {width, 3 * width},
       beginning::normal,
       dims.deviation},
      {block + "attn.c_attn.bias", {3 * width}, beginning::zeros},
      {block + "attn.c_proj.weight",
       {width, width},
       beginning::normal,
       dims.residual_deviation()},
      {block + "attn.c_proj.bias", {width}, beginning::zeros},
    };
    return half::divided(std::move(whole), "heads", size, 3, dims.shard);
  }

  attention_shape shape_of(std::int64_t samples) const {
    return {samples, this->dims().length, heads_, inner_,
            this->dims().shard.by_sequence};
  }

  /// The logarithms of sums: (B, the shard's heads, T).
  std::int64_t extra(std::int64_t samples) const override {
    return padded(this->dims().rows(samples) * heads_);
  }

  /// The gradient of `narrow`, and the scratch memory of attention.
  std::int64_t space(std::int64_t samples, int threads) const override {
    array_layout<Scalar> scratch_layout;
    scratch_layout.allocate(this->dims().rows(samples), inner_, this->dims().stored);
    scratch_layout.allocate(
      attention<Scalar>::scratch(shape_of(samples), threads, this->dims().stored));
    return scratch_layout.end();
  }

  void inner_forward(const frame<Scalar>& f, stored_matrix<const Scalar> normed,
                     const inner_arrays& to) const override {
    matmul<Scalar>(
      normed, this->up_weight(f), 0, to.wide, *f.compute_stream,
      {.kind = epilogue_kind::bias, .bias = this->weight(f, half::up_bias)});
    if (f.cache == nullptr || f.past == 0)
      attention<Scalar>::forward(shape_of(f.samples), to.wide, to.narrow, to.extra,
                                 to.space, *f.compute_stream);
    if (f.cache == nullptr)
      return;
    const next_tokens dims{this->dims().known_positions(), heads_, inner_, f.past};
    key_value_cache<Scalar>::put(dims, to.wide.plain(), f.cache, *f.compute_stream);
    if (f.past > 0)
      key_value_cache<Scalar>::attend(dims, to.wide.plain(), f.cache, to.narrow.plain(),
                                      *f.compute_stream);
  }

  void inner_backward(const frame<Scalar>& f, stored_matrix<const Scalar> dy,
                      const inner_arrays& inner,
                      stored_matrix<Scalar> dwide) const override {
    array_layout<Scalar> scratch_layout{inner.space};
    const auto dnarrow =
      scratch_layout.allocate(inner.narrow.rows, inner_, this->dims().stored);
    matmul<Scalar>(dy, this->down_weight(f).t(), 0, dnarrow, *f.compute_stream);
    attention<Scalar>::backward(shape_of(f.samples), inner.wide, inner.narrow,
                                inner.extra, dnarrow, dwide, scratch_layout.allocate(0),
                                *f.compute_stream);
  }

  std::int64_t heads_; // of the shard
  std::int64_t inner_; // Cs
};

} // namespace

template <class Scalar>
std::shared_ptr<const layer<Scalar>> attention_layer(const gpt_shape& dims,
                                                     int number) {
  return std::make_shared<attention_half<Scalar>>(dims, number);
}

template std::shared_ptr<const layer<float>> attention_layer<float>(const gpt_shape&,
                                                                    int);
template std::shared_ptr<const layer<double>> attention_layer<double>(const gpt_shape&,
                                                                      int);

} // namespace troupe
