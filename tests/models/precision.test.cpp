// SPDX-License-Identifier: BSD-3-Clause
// Activations stored as bf16: the memory that is saved, and gradients compared with
// those of fp32.

#include "models/data/open_data.hpp"
#include "models/plain_loop.hpp"
#include "models/slice.hpp"
#include "tests/kernels/numbers.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

namespace troupe::precision_test {

namespace {

/// The result of training on one batch.
trained one_batch(model_options model, const data_set& data, precision stored,
                  const std::function<bool(const parameter&)>& round = {}) {
  model.stored = stored;
  const auto whole = *make_network<float>(model);
  const auto weights = [&, source = initial_weights(whole, 5)](std::size_t layer,
                                                               float* to) {
    source(layer, to);
    for (const auto& p : whole.layers[layer]->parameters())
      for (std::int64_t i = 0; round && round(p) && i < p.values(); ++i)
        to[p.offset + i] = fp32_of(bf16_of(to[p.offset + i]));
  };
  return train_plainly({.whole = whole,
                        .first_layers = *cut(whole, 1, {}),
                        .data = data,
                        .batches = {64, 4},
                        .steps = 1,
                        .optimizer = {.rate = 0.01},
                        .weights = weights});
}

constexpr std::int64_t few_samples = 3;

/// The results of a layer's passes over some samples.
struct layer_ends {
  std::vector<float> y, dx;
};

/// Values of bf16 in stored form.
using bf16_values = std::vector<std::uint16_t>;

bf16_values as_bf16(const std::vector<float>& values) {
  bf16_values result;
  for (const float value : values)
    result.push_back(bf16_of(value));
  return result;
}

std::vector<float> as_fp32(const bf16_values& values) {
  std::vector<float> result;
  for (const auto value : values)
    result.push_back(fp32_of(value));
  return result;
}

std::vector<float> rounded(const std::vector<float>& values) {
  return as_fp32(as_bf16(values));
}

/// The fraction of values that differ.
double differing(const std::vector<float>& a, const std::vector<float>& b) {
  double result = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    result += a[i] != b.at(i) ? 1.0 / static_cast<double>(a.size()) : 0;
  return result;
}

/// Runs a layer whose inputs and outputs are stored as `Stored`.
/// \param x values that bf16 holds exactly; empty: the layer reads tokens, and has no
/// dx
template <class Stored>
layer_ends run(const layer<float>& l, std::vector<float>& bucket, std::vector<Stored> x,
               std::vector<Stored> dy) {
  const auto sizes = l.sizes(few_samples, 1);
  const auto room = [](std::int64_t n) {
    return std::vector<float>(static_cast<std::size_t>(n));
  };
  auto saved = room(sizes.saved), kept = room(sizes.kept),
       scratch = room(sizes.scratch), gradients = room(l.bucket());
  std::vector<Stored> y(dy.size()), dx(x.size());
  const auto tokens = random_labels(few_samples * l.input(), 11, 4);
  constexpr bool is_bf16 = std::is_same_v<Stored, std::uint16_t>;
  stream on{1, is_bf16 ? precision::bf16 : precision::fp32};
  frame<float> f;
  f.samples = few_samples;
  f.first = 0;
  f.tokens = x.empty() ? tokens.data() : nullptr;
  f.x = x.empty() ? nullptr : x.data();
  f.y = y.data();
  f.dy = dy.data();
  f.dx = x.empty() ? nullptr : dx.data();
  f.saved = saved.data();
  f.kept = kept.data();
  f.scratch = scratch.data();
  f.parameters = bucket.data();
  f.gradients = gradients.data();
  f.compute_stream = &on;
  l.forward(f);
  l.input_gradient(f);
  if constexpr (is_bf16)
    return {as_fp32(y), as_fp32(dx)};
  else
    return {y, dx};
}

/// Parameters for which no operand of a product and no value inside a layer is rounded.
/// The input of each GELU is 8, and the inputs of attention are biases that bf16 holds.
std::vector<float> exact_parameters(const layer<float>& l, unsigned seed) {
  auto result = random_values<float>(l.bucket(), seed);
  for (const auto& p : l.parameters()) {
    const auto is = [&](const char* part) {
      return p.name.find(part) != std::string::npos;
    };
    for (auto i = p.offset; i < p.offset + p.values(); ++i) {
      auto& value = result[static_cast<std::size_t>(i)];
      if (is("c_fc.weight") || is("c_attn.weight"))
        value = 0;
      else if (is("c_fc.bias"))
        value = 8;
      else if (is("c_attn.bias") || is("c_proj.weight"))
        value = fp32_of(bf16_of(value));
    }
  }
  return result;
}

} // namespace

// If products round no operands, bf16 differs from fp32 only by the last rounding.
TEST_CASE("what a layer makes in bf16 is rounded once, at its end", "[precision]") {
  model_options model{"gpt", 2, 16, 2, 4, 11};
  model.model = GENERATE("gpt", "moe");
  model.experts = {.count = 3, .chosen = 2, .capacity = 8, .noise = 0.5};
  model.experts.shared = GENERATE(false, true);
  const auto exact = *make_network<float>(model);
  model.stored = precision::bf16;
  const auto stored = *make_network<float>(model);
  for (std::size_t l = 0; l + 1 < exact.layers.size(); ++l) {
    INFO(exact.layers[l]->parameters().back().name);
    auto bucket = exact_parameters(*exact.layers[l], static_cast<unsigned>(l));
    const auto values = few_samples * exact.layers[l]->output();
    const auto x = l == 0 ? std::vector<float>{}
                          : rounded(random_values<float>(values, 30)),
               dy = rounded(random_values<float>(values, 31));
    const auto in_fp32 = run<float>(*exact.layers[l], bucket, x, dy),
               in_bf16 =
                 run<std::uint16_t>(*stored.layers[l], bucket, as_bf16(x), as_bf16(dy));
    // Sums in another order move few values across the middle between two bf16 values.
    CHECK(differing(in_bf16.y, rounded(in_fp32.y)) < 0.02);
    CHECK(differing(in_bf16.dx, rounded(in_fp32.dx)) < 0.02);
    CHECK(differing(in_fp32.y, rounded(in_fp32.y)) > 0.5);
  }
}

TEST_CASE("gradients of bf16 are those of fp32, but for what is rounded",
          "[precision]") {
  model_options model{"gpt", 4, 64, 4, 32, 61};
  model.model = GENERATE("gpt", "lenet", "lenet5", "mlp");
  // A ReLU passes a value or nothing: rounding changes that decision for some values.
  const double most = model.model == "gpt" ? 3e-2 : is_lenet(model.model) ? 5e-2 : 6e-2;
  const auto whole = *make_network<float>(model);
  const auto data = *open_data("synthetic", model, 3);
  const auto exact = one_batch(model, *data, precision::fp32),
             rounded = one_batch(model, *data, precision::bf16);
  CHECK(rounded.loss != exact.loss);
  for (std::size_t l = 0; l < whole.layers.size(); ++l)
    for (const auto& p : whole.layers[l]->parameters()) {
      const auto values_of = [&](const trained& all) {
        const auto first = all.gradients[l].begin() + p.offset;
        std::vector<float> result(first, first + p.values());
        if (p.name.ends_with("attn.c_attn.bias")) // keys have no gradient but noise
          std::fill_n(result.begin() + p.values() / 3, p.values() / 3, 0.0F);
        return result;
      };
      INFO(p.name);
      const auto got = values_of(rounded), expected = values_of(exact);
      CHECK(relative_difference(got, expected) < most);
      CHECK((got != expected));
    }
}

TEST_CASE("products round weights, and nothing else does", "[precision]") {
  model_options model{"gpt", 4, 32, 4, 8, 61};
  model.model = GENERATE("gpt", "moe", "lenet", "lenet5", "mlp");
  model.experts.shared = true;
  const auto data = *open_data("synthetic", model, 3);
  const auto is_operand = [](const parameter& p) {
    const auto is = [&](const char* part) {
      return p.name.find(part) != std::string::npos;
    };
    return p.is_matrix() && !is("wte") && !is("wpe") && !is("router") && !is("conv");
  };
  const auto all = one_batch(model, *data, precision::bf16),
             rounded = one_batch(model, *data, precision::bf16, is_operand),
             others = one_batch(model, *data, precision::bf16,
                                [&](const parameter&p) { return !is_operand(p); });
  const auto whole = *make_network<float>(model);
  for (const auto& l : whole.layers)
    for (const auto& p : l->parameters())
      CHECK(p.multiplied == is_operand(p)); // older versions round such parameters
  CHECK(rounded.loss == all.loss);
  CHECK((rounded.gradients == all.gradients));
  CHECK((rounded.parameters != all.parameters)); // updated values are not rounded
  CHECK((others.gradients != all.gradients));    // biases, gains, embeddings: see docs
}

TEST_CASE("bf16 halves what stages keep and send", "[precision]") {
  model_options model{"gpt", 4, 64, 4, 32, 61};
  model.model = GENERATE("gpt", "moe", "lenet", "lenet5", "mlp");
  const auto sizes = [&](precision stored) {
    model.stored = stored;
    const auto whole = *make_network<float>(model);
    std::vector<slice_sizes> result;
    for (const auto& one : slice<float>::cut_at(whole, *cut(whole, 2, {}), 1))
      result.push_back(one.sizes(8));
    return result;
  };
  const auto exact = sizes(precision::fp32), rounded = sizes(precision::bf16);
  CHECK(rounded[0].input == exact[0].input);        // tokens or pixels
  const int halves = is_lenet(model.model) ? 1 : 2; // cut before a convolution
  CHECK(halves * rounded[0].output == exact[0].output);
  CHECK(halves * rounded[1].input == exact[1].input);
  CHECK(rounded[1].labels == exact[1].labels);
  if (model.model != "gpt") // logits, and inputs of experts, stay fp32
    return;
  const auto ratio = [](std::int64_t part, std::int64_t of) {
    return static_cast<double>(part) / static_cast<double>(of);
  };
  CHECK(ratio(rounded[0].stash, exact[0].stash) < 0.52); // statistics are fp32
  CHECK(ratio(rounded[1].stash, exact[1].stash) < 0.54); // and logits
  CHECK(ratio(rounded[0].kept, exact[0].kept) < 0.62);   // and sums of shards
}

TEST_CASE("bf16 keeps values in pairs", "[precision]") {
  model_options model{"gpt", 2, 63, 3, 8, 11};
  CHECK(make_network<float>(model));
  model.stored = precision::bf16;
  CHECK(
    make_network<float>(model).error()
    == "--d-model 63 is odd, and bf16 keeps values in pairs: give an even --d-model");
}

} // namespace troupe::precision_test
