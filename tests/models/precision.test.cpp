// What is stored as bf16: how much less that is, and gradients beside those of fp32.

#include "models/data/open_data.hpp"
#include "models/plain_loop.hpp"
#include "models/slice.hpp"
#include "tests/kernels/numbers.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

using namespace troupe;

namespace {

/// What one batch leaves behind.
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

} // namespace

TEST_CASE("gradients of bf16 are those of fp32, but for what is rounded",
          "[precision]") {
  model_options model{"gpt", 4, 64, 4, 32, 61};
  model.model = GENERATE("gpt", "lenet", "lenet5", "mlp");
  // A ReLU passes nothing or all: what is rounded decides some of them otherwise.
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
        if (p.name.ends_with("attn.c_attn.bias")) // keys' have no gradient but noise
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
      CHECK(p.multiplied == is_operand(p)); // older versions round those
  CHECK(rounded.loss == all.loss);
  CHECK((rounded.gradients == all.gradients));
  CHECK((rounded.parameters != all.parameters)); // what is updated is not rounded
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
  if (model.model != "gpt") // logits, and what experts are given, stay fp32
    return;
  const auto ratio = [](std::int64_t part, std::int64_t of) {
    return static_cast<double>(part) / static_cast<double>(of);
  };
  CHECK(ratio(rounded[0].stash, exact[0].stash) < 0.52); // statistics are fp32
  CHECK(ratio(rounded[1].stash, exact[1].stash) < 0.54); // and logits
  CHECK(ratio(rounded[0].kept, exact[0].kept) < 0.62);   // and what shards would sum
}

TEST_CASE("values of bf16 are kept in pairs", "[precision]") {
  model_options model{"gpt", 2, 63, 3, 8, 11};
  CHECK(make_network<float>(model));
  model.stored = precision::bf16;
  CHECK(make_network<float>(model).error()
        == "values of bf16 are kept in pairs: give it an even d-model, not 63");
}
