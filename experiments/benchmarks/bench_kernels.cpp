// SPDX-License-Identifier: BSD-3-Clause
// B sequences of T tokens, R = B T rows of a microbatch; width C, H heads, V words.

#include "experiments/benchmarks/benchmarks.hpp"
#include "kernels/attention.hpp"
#include "kernels/bf16_choice.hpp"
#include "kernels/bias.hpp"
#include "kernels/convolution.hpp"
#include "kernels/cross_entropy.hpp"
#include "kernels/embedding.hpp"
#include "kernels/epilogue.hpp"
#include "kernels/layer_norm.hpp"
#include "kernels/matmul.hpp"
#include "kernels/optimizers.hpp"
#include "kernels/relu_pool.hpp"

#include <cstring>
#include <random>

namespace troupe {

namespace {

using values = std::vector<float>;

values random_values(std::int64_t count) {
  static std::mt19937 generator{1};
  std::normal_distribution<float> normal{0, 1};
  values result(static_cast<std::size_t>(count));
  for (auto& x : result)
    x = normal(generator);
  return result;
}

/// Measures kernels side by side with a product of known size, or with a copy of
/// memory.
class bench {
public:
  explicit bench(const benchmark& b)
    : b_(b),
      operands_(random_values(3 * side * side)),
      copied_(random_values(2 * copied)) {}

  /// \param product_precision precision of the products in `work`
  template <class Work>
  void arithmetic(precision product_precision, const std::string& name,
                  double operations, const Work& work) {
    if (product_precision == precision::bf16 && chosen_bf16_path() != bf16_path::widen)
      compare_with_product(name, operations, work, blocks_, bf16_product::operations,
                           "bf16 blocks");
    else
      compare_with_product(
        name, operations, work, [this] { yardstick_product(side, operands_.data()); },
        2.0 * side * side * side, name_of_yardstick());
  }

  precision products() const { return b_.plan.work->whole.options.stored; }

  /// \param bytes read and written
  template <class Work>
  void memory(const std::string& name, double bytes, const Work& work) {
    const auto copy = [this] {
      std::memcpy(copied_.data(), copied_.data() + copied, copied * sizeof(float));
    };
    const auto took = take_turns(work, copy);
    const double rate = bytes / took.first / 1e9,
                 ceiling = 2.0 * copied * sizeof(float) / took.second / 1e9;
    b_.report({"kernels", name, rate, "GB/s", rate / ceiling, "copy"});
  }

private:
  template <class Work, class Product>
  void compare_with_product(const std::string& name, double operations,
                            const Work& work, Product&& product, double of_product,
                            const char* yardstick) {
    const auto took = take_turns(work, product);
    const double rate = operations / took.first / 1e9,
                 ceiling = of_product / took.second / 1e9;
    b_.report({"kernels", name, rate, "GFLOP/s", rate / ceiling, yardstick});
  }

  static constexpr std::int64_t side = 512;
  static constexpr std::int64_t copied = 1 << 24; // values

  const benchmark& b_;
  values operands_, copied_;
  bf16_product blocks_;
};

/// An array in the type that a run of this precision stores.
class stored_array {
public:
  stored_array(precision stored, std::int64_t rows, std::int64_t columns)
    : stored_(stored),
      rows_(rows),
      columns_(columns),
      wide_(random_values(rows * columns)) {
    half_.resize(wide_.size());
    round_row(wide_.data(), rows * columns, half_.data());
  }

  stored_matrix<float> view() {
    if (stored_ == precision::bf16)
      return dense(half_.data(), rows_, columns_);
    return dense(wide_.data(), rows_, columns_);
  }

private:
  precision stored_;
  std::int64_t rows_, columns_;
  values wide_;
  std::vector<bf16> half_;
};

/// Measures the three products of a linear layer (R, in) (in, out).
void measure_linear(bench& run, const std::string& name, std::int64_t rows,
                    std::int64_t in, std::int64_t out) {
  stored_array x{run.products(), rows, in}, y{run.products(), rows, out};
  auto w = random_values(in * out);
  stream alone{1, run.products()};
  const double operations = 2.0 * static_cast<double>(rows) * static_cast<double>(in)
                            * static_cast<double>(out);
  const auto mx = x.view(), my = y.view();
  const auto mw = dense(w.data(), in, out);
  run.arithmetic(run.products(), name + ", forward", operations,
                 [&] { matmul<float>(mx, mw, 0, my, alone); });
  run.arithmetic(run.products(), name + ", input gradient", operations,
                 [&] { matmul<float>(my, mw.t(), 0, mx, alone); });
  run.arithmetic(run.products(), name + ", weight gradient", operations,
                 [&] { matmul<float>(mx.t(), my, 1, mw, alone); });
}

void measure_attention(bench& run, const attention_shape& dims) {
  const auto rows = dims.sequences * dims.length;
  const auto product_precision = run.products();
  stored_array qkv{product_precision, rows, 3 * dims.width},
    dqkv{product_precision, rows, 3 * dims.width},
    y{product_precision, rows, dims.width}, dy{product_precision, rows, dims.width};
  auto log_sum = random_values(rows * dims.heads),
       space = random_values(attention<float>::scratch(dims, 1, product_precision));
  stream alone{1, product_precision};
  // Causal attention has half of the scores: two products forward and five backward, of
  // T / 2 keys for each query.
  const double product = static_cast<double>(rows * dims.length * dims.width);
  run.arithmetic(run.products(), "attention, forward", 2 * product, [&] {
    attention<float>::forward(dims, qkv.view(), y.view(), log_sum.data(), space.data(),
                              alone);
  });
  run.arithmetic(run.products(), "attention, gradient", 5 * product, [&] {
    attention<float>::backward(dims, qkv.view(), y.view(), log_sum.data(), dy.view(),
                               dqkv.view(), space.data(), alone);
  });
}

void measure_rowwise(bench& run, std::int64_t rows, std::int64_t width,
                     std::int64_t words) {
  constexpr double bytes = sizeof(float);
  const auto wide = 4 * width;
  const double array_bytes = static_cast<double>(rows * width) * bytes;
  auto x = random_values(rows * wide), y = x, dy = x, gain = random_values(wide),
       shift = gain, mean = random_values(rows), rstd = mean;
  stream alone;
  const auto mx = dense(x.data(), rows, width), my = dense(y.data(), rows, width),
             mdy = dense(dy.data(), rows, width);
  const epilogue<float> end{.kind = epilogue_kind::bias_gelu,
                            .bias = gain.data(),
                            .y = dense(y.data(), rows, wide)};
  run.memory("bias, gelu and its slope", 12 * array_bytes,
             [&] { end.finish(dense(x.data(), rows, wide), 0, 0); });
  run.memory("layer norm, forward", 2 * array_bytes, [&] {
    layer_norm<float>::forward(mx, gain.data(), shift.data(), my, mean.data(),
                               rstd.data(), alone);
  });
  run.memory("layer norm, input gradient", 4 * array_bytes, [&] {
    layer_norm<float>::input_gradient(mx, gain.data(), mean.data(), rstd.data(), mdy,
                                      mdy, my, alone);
  });
  run.memory("layer norm, weight gradient", 2 * array_bytes, [&] {
    layer_norm<float>::weight_gradient(mx, mean.data(), rstd.data(), mdy, 1,
                                       gain.data(), shift.data(), alone);
  });
  run.memory("bias and residual", 3 * array_bytes,
             [&] { bias<float>::add_with_residual(my, gain.data(), mx, my, alone); });
  run.memory("bias, gradient", array_bytes,
             [&] { bias<float>::gradient(mdy, 1, gain.data(), alone); });
  auto logits = random_values(rows * words), losses = random_values(rows);
  const std::vector<std::int32_t> labels(static_cast<std::size_t>(rows), 0);
  loss_sum sum;
  run.memory(
    "softmax and cross-entropy", 2 * static_cast<double>(rows * words) * bytes, [&] {
      cross_entropy<float>::forward(dense(logits.data(), rows, words), labels.data(), 1,
                                    dense(logits.data(), rows, words), losses.data(),
                                    sum, alone);
    });
}

void measure_embedding(bench& run, const embedding<float>::shape& dims) {
  const auto rows = dims.sequences * dims.length;
  auto words = random_values(dims.words * dims.width),
       positions = random_values(dims.length * dims.width),
       y = random_values(rows * dims.width);
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < rows; ++i)
    tokens.push_back(static_cast<std::int32_t>(i * 7 % dims.words));
  stream alone;
  const auto out = dense(y.data(), rows, dims.width);
  const double bytes = 3.0 * static_cast<double>(rows * dims.width) * sizeof(float);
  run.memory("embedding, forward", bytes, [&] {
    embedding<float>::forward(
      dims, tokens.data(), dense(words.data(), dims.words, dims.width),
      dense(positions.data(), dims.length, dims.width), out, alone);
  });
  run.memory("embedding, gradient", bytes, [&] {
    embedding<float>::gradient(dims, tokens.data(), out, 1, words.data(),
                               positions.data(), alone);
  });
}

void measure_convolution(bench& run, const std::string& name,
                         const convolution_shape& dims) {
  auto x = random_values(dims.images * dims.in_values()),
       w = random_values(dims.filters * dims.patch()),
       shift = random_values(dims.filters),
       y = random_values(dims.images * dims.out_values()),
       space = random_values(convolution<float>::scratch(dims, 1));
  stream alone;
  const double operations =
    2.0 * static_cast<double>(dims.images * dims.out_values() * dims.patch());
  run.arithmetic(precision::fp32, name + ", forward", operations, [&] {
    convolution<float>::forward(dims, x.data(), w.data(), shift.data(), y.data(),
                                space.data(), alone);
  });
  run.arithmetic(precision::fp32, name + ", input gradient", operations, [&] {
    convolution<float>::input_gradient(dims, w.data(), y.data(), x.data(), space.data(),
                                       alone);
  });
  run.arithmetic(precision::fp32, name + ", weight gradient", operations, [&] {
    convolution<float>::weight_gradient(dims, x.data(), y.data(), 1, w.data(),
                                        shift.data(), space.data(), alone);
  });
}

void measure_updates(bench& run, std::int64_t parameters) {
  auto gradient = random_values(parameters), from = gradient, mean = gradient,
       square = values(gradient.size(), 1.0F);
  const double array = static_cast<double>(parameters) * sizeof(float);
  stream alone;
  const update_arrays arrays{
    gradient.data(), from.data(), from.data(), {mean.data(), square.data()}};
  run.memory("adamw", 7 * array, [&] {
    update_values(adamw_update::of(1e-3, 0.9, 0.999, 1e-8, 0.01, 10), 1, arrays,
                  parameters, alone);
  });
  run.memory("sgd with momentum", 5 * array, [&] {
    update_values(momentum_update{1e-3F, 0, 0.9F}, 1, arrays, parameters, alone);
  });
}

} // namespace

std::int64_t benchmark::rows() const {
  return plan.batches().largest() * plan.work->whole.rows;
}

void measure_kernels(const benchmark& b) {
  bench run{b};
  const auto& m = b.model;
  const auto samples = b.plan.batches().largest(), rows = b.rows();
  if (m.model == "gpt") {
    measure_linear(run, "queries, keys, values", rows, m.width, 3 * m.width);
    measure_linear(run, "attention's projection", rows, m.width, m.width);
    measure_linear(run, "up", rows, m.width, 4 * m.width);
    measure_linear(run, "down", rows, 4 * m.width, m.width);
    measure_linear(run, "head", rows, m.width, m.words);
    measure_attention(run, {samples, m.length, m.heads, m.width});
    measure_rowwise(run, rows, m.width, m.words);
    measure_embedding(run, {samples, m.length, m.width, m.words});
  } else if (is_lenet(m.model)) {
    const std::int64_t padding = m.model == "lenet5" ? 2 : 0, side = 12 + padding;
    measure_convolution(run, "conv1", {samples, 1, 28, 28, 6, 5, padding});
    measure_convolution(run, "conv2", {samples, 6, side, side, 16, 5});
    measure_linear(run, "fc1", samples, 4 * (side - 4) * (side - 4), 120);
  } else {
    measure_linear(run, "hidden layer", samples, m.width, m.width);
  }
  std::int64_t parameters = 0;
  for (const auto& l : b.plan.work->whole.layers)
    parameters += l->bucket();
  measure_updates(run, parameters);
}

} // namespace troupe
