// Gradients with products of bf16, beside those of fp32.

#include "models/data/open_data.hpp"
#include "models/plain_loop.hpp"
#include "tests/kernels/numbers.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <vector>

using namespace troupe;

namespace {

/// What one batch leaves behind.
trained one_batch(const network<float>& whole, const data_set& data,
                  precision products) {
  return train_plainly({.whole = whole,
                        .first_layers = *cut(whole, 1, {}),
                        .data = data,
                        .batches = {64, 4},
                        .steps = 1,
                        .optimizer = {.rate = 0.01},
                        .weights = initial_weights(whole, 5),
                        .products = products});
}

} // namespace

TEST_CASE("gradients of bf16 are those of fp32, but for what is rounded",
          "[precision]") {
  model_options model{"gpt", 4, 64, 4, 32, 61};
  model.model = GENERATE("gpt", "lenet");
  // A ReLU passes nothing or all: what is rounded decides some of them otherwise.
  const double most = model.model == "gpt" ? 3e-2 : 5e-2;
  const auto whole = *make_network<float>(model);
  const auto data = *open_data("synthetic", model, 3);
  const auto exact = one_batch(whole, *data, precision::fp32),
             rounded = one_batch(whole, *data, precision::bf16);
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
