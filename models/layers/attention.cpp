#include "kernels/attention.hpp"

#include "kernels/bias.hpp"
#include "kernels/layer_norm.hpp"
#include "kernels/matmul.hpp"
#include "models/layers/gpt.hpp"

#include <string>

namespace troupe {

namespace {

// B samples, T tokens each, R = B T rows, width C, H heads, of which a shard has some:
// they are Cs = C / shards wide.
template <class Scalar>
class attention_half : public layer<Scalar> {
public:
  attention_half(const gpt_shape& dims, int number)
    : layer<Scalar>(parameters_of(dims, number), dims.length * dims.width,
                    dims.length * dims.width),
      dims_(dims),
      inner_(dims.shard.part(dims.heads) * (dims.width / dims.heads)) {
    // nop
  }

  layer_sizes sizes(std::int64_t samples, int threads) const override {
    const auto rows = samples * dims_.length, width = dims_.width;
    const auto threads_space =
      attention<Scalar>::scratch(shape_of(samples)) * std::int64_t{threads};
    return {.saved = saved_parts{*this, samples}.end,
            .kept = padded(rows * 3 * inner_) + padded(rows * width),
            .scratch = padded(rows * inner_) + threads_space};
  }

  double operations() const override {
    const auto t = static_cast<double>(dims_.length),
               c = static_cast<double>(dims_.width), cs = static_cast<double>(inner_);
    return t * (8 * c * cs + 2 * t * cs); // products of 3Cs + Cs columns; causal
  }

  int pieces() const override { return dims_.shard.count > 1 ? 2 : 1; }

  shard_collective<Scalar> after(layer_pass pass, int piece,
                                 const frame<Scalar>& f) const override {
    const auto rows = f.samples * dims_.length, values = rows * dims_.width;
    if (pieces() == 1 || piece > 0)
      return {};
    return {shard_collective<Scalar>::kind::sum,
            pass == layer_pass::forward ? f.y : f.kept + padded(rows * 3 * inner_),
            values};
  }

  void forward(const frame<Scalar>& f, int piece) const override {
    const auto rows = f.samples * dims_.length, width = dims_.width;
    const saved_parts s{*this, f.samples};
    const auto x = dense(f.x, rows, width), y = dense(f.y, rows, width);
    const auto end_of_branch = [&](std::int64_t row, std::int64_t column,
                                   matrix<Scalar> part) {
      bias<Scalar>::add_with_residual(part, this->weight(f, proj_bias) + column,
                                      x.part(row, column, part));
    };
    if (piece > 0) {
      f.threads->run_ranges(rows, 16, [&](std::int64_t first, std::int64_t last, int) {
        end_of_branch(first, 0, y.row_range(first, last - first));
      });
      return;
    }
    const auto normed = dense(f.saved + s.normed, rows, width);
    layer_norm<Scalar>::forward(x, this->weight(f, ln_gain), this->weight(f, ln_bias),
                                normed, f.saved + s.mean, f.saved + s.rstd, *f.threads);
    matmul<Scalar>(normed, qkv_weight(f), 0, dense(f.saved + s.qkv, rows, 3 * inner_),
                   *f.threads,
                   [&](std::int64_t, std::int64_t column, matrix<Scalar> part) {
                     bias<Scalar>::add(part, this->weight(f, attn_bias) + column);
                   });
    attention<Scalar>::forward(shape_of(f.samples), f.saved + s.qkv, f.saved + s.mixed,
                               f.saved + s.log_sum, f.scratch, *f.threads);
    const auto mixed = dense(f.saved + s.mixed, rows, inner_);
    if (pieces() == 1)
      matmul<Scalar>(mixed, proj_weight(f), 0, y, *f.threads, end_of_branch);
    else
      matmul<Scalar>(mixed, proj_weight(f), 0, y, *f.threads);
  }

  void input_gradient(const frame<Scalar>& f, int piece) const override {
    const auto rows = f.samples * dims_.length, width = dims_.width;
    const saved_parts s{*this, f.samples};
    const auto dy = dense(f.dy, rows, width);
    const auto dmixed = dense(f.scratch, rows, inner_);
    const auto dqkv = dense(f.kept, rows, 3 * inner_);
    const auto dnormed = dense(f.kept + padded(rows * 3 * inner_), rows, width);
    if (piece == 0) {
      matmul<Scalar>(dy, proj_weight(f).t(), 0, dmixed, *f.threads);
      attention<Scalar>::backward(
        shape_of(f.samples), f.saved + s.qkv, f.saved + s.mixed, f.saved + s.log_sum,
        dmixed.data, dqkv.data, f.scratch + padded(rows * inner_), *f.threads);
      matmul<Scalar>(dqkv, qkv_weight(f).t(), 0, dnormed, *f.threads);
    }
    if (piece + 1 < pieces())
      return;
    layer_norm<Scalar>::input_gradient(
      dense(f.x, rows, width), this->weight(f, ln_gain), f.saved + s.mean,
      f.saved + s.rstd, dnormed, dy, dense(f.dx, rows, width), *f.threads);
  }

  void weight_gradient(const frame<Scalar>& f) const override {
    const auto rows = f.samples * dims_.length, width = dims_.width;
    const saved_parts s{*this, f.samples};
    const auto dy = dense(f.dy, rows, width);
    const auto dqkv = dense<const Scalar>(f.kept, rows, 3 * inner_);
    const auto dnormed =
      dense<const Scalar>(f.kept + padded(rows * 3 * inner_), rows, width);
    matmul<Scalar>(dense(f.saved + s.mixed, rows, inner_).t(), dy, f.beta,
                   dense(this->gradient(f, proj), inner_, width), *f.threads);
    bias<Scalar>::gradient(dy, f.beta, this->gradient(f, proj_bias), *f.threads);
    matmul<Scalar>(dense(f.saved + s.normed, rows, width).t(), dqkv, f.beta,
                   dense(this->gradient(f, attn), width, 3 * inner_), *f.threads);
    bias<Scalar>::gradient(dqkv, f.beta, this->gradient(f, attn_bias), *f.threads);
    layer_norm<Scalar>::weight_gradient(
      dense(f.x, rows, width), f.saved + s.mean, f.saved + s.rstd, dnormed, f.beta,
      this->gradient(f, ln_gain), this->gradient(f, ln_bias), *f.threads);
  }

private:
  enum : std::size_t { ln_gain, ln_bias, attn, attn_bias, proj, proj_bias };

  static std::vector<parameter> parameters_of(const gpt_shape& dims, int number) {
    const auto block = "transformer.h." + std::to_string(number) + ".";
    const auto width = dims.width, size = width / dims.heads;
    const auto first = dims.shard.first(dims.heads) * size,
               last = dims.shard.last(dims.heads) * size;
    std::vector<parameter> whole{
      {block + "ln_1.weight", {width}, beginning::ones},
      {block + "ln_1.bias", {width}, beginning::zeros},
      {block + "attn.c_attn.weight", {width, 3 * width}, beginning::normal, 0.02},
      {block + "attn.c_attn.bias", {3 * width}, beginning::zeros},
      {block + "attn.c_proj.weight", {width, width}, beginning::normal, 0.02},
      {block + "attn.c_proj.bias", {width}, beginning::zeros},
    };
    if (dims.shard.count == 1)
      return whole;
    const std::vector<parameter_cut::range> heads{
      {first, last},
      {width + first, width + last},
      {2 * width + first, 2 * width + last}};
    whole[attn] = columns_of(whole[attn], heads);
    whole[attn_bias] = columns_of(whole[attn_bias], heads);
    whole[proj] = rows_of(whole[proj], dims.shard);
    return whole;
  }

  /// Where what the backward needs lies in `saved`.
  struct saved_parts {
    saved_parts(const attention_half& half, std::int64_t samples) {
      const auto rows = samples * half.dims_.length, width = half.dims_.width;
      mean = normed + padded(rows * width);
      rstd = mean + padded(rows);
      qkv = rstd + padded(rows);
      mixed = qkv + padded(rows * 3 * half.inner_);
      log_sum = mixed + padded(rows * half.inner_);
      end = log_sum + padded(rows * half.dims_.shard.part(half.dims_.heads));
    }

    std::int64_t normed = 0; // ln_1's output (R, C)
    std::int64_t mean, rstd; // (R)
    std::int64_t qkv;        // (R, 3Cs)
    std::int64_t mixed;      // attention's output (R, Cs)
    std::int64_t log_sum;    // (B, the shard's heads, T)
    std::int64_t end;
  };

  attention_shape shape_of(std::int64_t samples) const {
    return {samples, dims_.length, dims_.shard.part(dims_.heads), inner_};
  }

  matrix<const Scalar> qkv_weight(const frame<Scalar>& f) const {
    return dense(this->weight(f, attn), dims_.width, 3 * inner_);
  }

  matrix<const Scalar> proj_weight(const frame<Scalar>& f) const {
    return dense(this->weight(f, proj), inner_, dims_.width);
  }

  gpt_shape dims_;
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
