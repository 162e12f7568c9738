#include "kernels/bias.hpp"
#include "kernels/gelu.hpp"
#include "kernels/layer_norm.hpp"
#include "kernels/matmul.hpp"
#include "models/layers/gpt.hpp"

#include <string>

namespace troupe {

namespace {

// B samples, T tokens each, R = B T rows, width C, 4C between the two products, of
// which a shard has F.
template <class Scalar>
class feed_forward_half : public layer<Scalar> {
public:
  feed_forward_half(const gpt_shape& dims, int number)
    : layer<Scalar>(parameters_of(dims, number), dims.length * dims.width,
                    dims.length * dims.width),
      length_(dims.length),
      width_(dims.width),
      shard_(dims.shard),
      hidden_(dims.shard.part(4 * dims.width)) {
    // nop
  }

  layer_sizes sizes(std::int64_t samples, int) const override {
    const auto rows = samples * length_;
    return {.saved = saved_parts{*this, samples}.end,
            .kept = padded(rows * hidden_) + padded(rows * width_)};
  }

  double operations() const override {
    return static_cast<double>(length_) * 4 * static_cast<double>(width_ * hidden_);
  }

  int pieces() const override { return shard_.count > 1 ? 2 : 1; }

  shard_collective<Scalar> after(layer_pass pass, int piece,
                                 const frame<Scalar>& f) const override {
    const auto rows = f.samples * length_;
    if (pieces() == 1 || piece > 0)
      return {};
    return {shard_collective<Scalar>::kind::sum,
            pass == layer_pass::forward ? f.y : f.kept + padded(rows * hidden_),
            rows * width_};
  }

  void forward(const frame<Scalar>& f, int piece) const override {
    const auto rows = f.samples * length_;
    const saved_parts s{*this, f.samples};
    const auto x = dense(f.x, rows, width_), y = dense(f.y, rows, width_);
    const auto end_of_branch = [&](std::int64_t row, std::int64_t column,
                                   matrix<Scalar> part) {
      bias<Scalar>::add_with_residual(part, this->weight(f, down_bias) + column,
                                      x.part(row, column, part));
    };
    if (piece > 0) {
      f.threads->run_ranges(rows, 16, [&](std::int64_t first, std::int64_t last, int) {
        end_of_branch(first, 0, y.row_range(first, last - first));
      });
      return;
    }
    const auto normed = dense(f.saved + s.normed, rows, width_);
    const auto activated = dense(f.saved + s.activated, rows, hidden_);
    layer_norm<Scalar>::forward(x, this->weight(f, ln_gain), this->weight(f, ln_bias),
                                normed, f.saved + s.mean, f.saved + s.rstd, *f.threads);
    matmul<Scalar>(normed, up_weight(f), 0, dense(f.saved + s.wide, rows, hidden_),
                   *f.threads,
                   [&](std::int64_t row, std::int64_t column, matrix<Scalar> part) {
                     bias<Scalar>::add(part, this->weight(f, up_bias) + column);
                     gelu<Scalar>::forward(part, activated.part(row, column, part));
                   });
    if (pieces() == 1)
      matmul<Scalar>(activated, down_weight(f), 0, y, *f.threads, end_of_branch);
    else
      matmul<Scalar>(activated, down_weight(f), 0, y, *f.threads);
  }

  void input_gradient(const frame<Scalar>& f, int piece) const override {
    const auto rows = f.samples * length_;
    const saved_parts s{*this, f.samples};
    const auto dy = dense(f.dy, rows, width_);
    const auto dwide = dense(f.kept, rows, hidden_);
    const auto dnormed = dense(f.kept + padded(rows * hidden_), rows, width_);
    const auto wide = dense<const Scalar>(f.saved + s.wide, rows, hidden_);
    if (piece == 0) {
      matmul<Scalar>(dy, down_weight(f).t(), 0, dwide, *f.threads,
                     [&](std::int64_t row, std::int64_t column, matrix<Scalar> part) {
                       gelu<Scalar>::backward(wide.part(row, column, part), part, part);
                     });
      matmul<Scalar>(dwide, up_weight(f).t(), 0, dnormed, *f.threads);
    }
    if (piece + 1 < pieces())
      return;
    layer_norm<Scalar>::input_gradient(
      dense(f.x, rows, width_), this->weight(f, ln_gain), f.saved + s.mean,
      f.saved + s.rstd, dnormed, dy, dense(f.dx, rows, width_), *f.threads);
  }

  void weight_gradient(const frame<Scalar>& f) const override {
    const auto rows = f.samples * length_;
    const saved_parts s{*this, f.samples};
    const auto dy = dense(f.dy, rows, width_);
    const auto dwide = dense<const Scalar>(f.kept, rows, hidden_);
    const auto dnormed =
      dense<const Scalar>(f.kept + padded(rows * hidden_), rows, width_);
    matmul<Scalar>(dense(f.saved + s.activated, rows, hidden_).t(), dy, f.beta,
                   dense(this->gradient(f, down), hidden_, width_), *f.threads);
    bias<Scalar>::gradient(dy, f.beta, this->gradient(f, down_bias), *f.threads);
    matmul<Scalar>(dense(f.saved + s.normed, rows, width_).t(), dwide, f.beta,
                   dense(this->gradient(f, up), width_, hidden_), *f.threads);
    bias<Scalar>::gradient(dwide, f.beta, this->gradient(f, up_bias), *f.threads);
    layer_norm<Scalar>::weight_gradient(
      dense(f.x, rows, width_), f.saved + s.mean, f.saved + s.rstd, dnormed, f.beta,
      this->gradient(f, ln_gain), this->gradient(f, ln_bias), *f.threads);
  }

private:
  enum : std::size_t { ln_gain, ln_bias, up, up_bias, down, down_bias };

  static std::vector<parameter> parameters_of(const gpt_shape& dims, int number) {
    const auto block = "transformer.h." + std::to_string(number) + ".";
    const auto width = dims.width;
    std::vector<parameter> whole{
      {block + "ln_2.weight", {width}, beginning::ones},
      {block + "ln_2.bias", {width}, beginning::zeros},
      {block + "mlp.c_fc.weight", {width, 4 * width}, beginning::normal, 0.02},
      {block + "mlp.c_fc.bias", {4 * width}, beginning::zeros},
      {block + "mlp.c_proj.weight", {4 * width, width}, beginning::normal, 0.02},
      {block + "mlp.c_proj.bias", {width}, beginning::zeros},
    };
    if (dims.shard.count == 1)
      return whole;
    const parameter_cut::range some{dims.shard.first(4 * width),
                                    dims.shard.last(4 * width)};
    whole[up] = columns_of(whole[up], {some});
    whole[up_bias] = columns_of(whole[up_bias], {some});
    whole[down] = rows_of(whole[down], dims.shard);
    return whole;
  }

  /// Where what the backward needs lies in `saved`.
  struct saved_parts {
    saved_parts(const feed_forward_half& half, std::int64_t samples) {
      const auto rows = samples * half.length_, width = half.width_;
      mean = normed + padded(rows * width);
      rstd = mean + padded(rows);
      wide = rstd + padded(rows);
      activated = wide + padded(rows * half.hidden_);
      end = activated + padded(rows * half.hidden_);
    }

    std::int64_t normed = 0; // ln_2's output (R, C)
    std::int64_t mean, rstd; // (R)
    std::int64_t wide;       // before the GELU (R, F)
    std::int64_t activated;  // after it (R, F)
    std::int64_t end;
  };

  matrix<const Scalar> up_weight(const frame<Scalar>& f) const {
    return dense(this->weight(f, up), width_, hidden_);
  }

  matrix<const Scalar> down_weight(const frame<Scalar>& f) const {
    return dense(this->weight(f, down), hidden_, width_);
  }

  std::int64_t length_;
  std::int64_t width_;
  tensor_shard shard_;
  std::int64_t hidden_; // F
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
