// Networks for shorter sequences, and microbatches that are not alike.

#include "models/data/open_data.hpp"
#include "models/data/read_samples.hpp"
#include "models/slices_by_length.hpp"
#include "tests/kernels/numbers.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>

using namespace troupe;

namespace {

constexpr std::int64_t longest = 8, samples = 3;

model_options model_of(const std::string& name, std::int64_t length = longest) {
  model_options result{name, 2, 8, 2, length, 11};
  result.experts = {.count = 3, .chosen = 2, .capacity = 0.7};
  return result;
}

using buckets = std::vector<std::vector<float>>;

/// A forward and a backward of a whole network.
struct trained_once {
  loss_sum loss;
  buckets gradients;
};

trained_once train(const network<float>& whole, buckets parameters,
                   const std::vector<std::int32_t>& tokens,
                   const std::vector<std::int32_t>& labels, float beta, float before) {
  const slice<float> layers{whole, 0, static_cast<int>(whole.layers.size()), 1};
  const auto sizes = layers.sizes(samples);
  std::vector<float> stash(static_cast<std::size_t>(sizes.stash)),
    scratch(static_cast<std::size_t>(sizes.scratch));
  trained_once result;
  stream on{1};
  pass<float> p;
  p.samples = samples;
  p.first = 0;
  p.tokens = tokens.data();
  p.labels = labels.data();
  p.stash = stash.data();
  p.scratch = scratch.data();
  p.beta = beta;
  p.on = &on;
  for (auto& bucket : parameters) {
    p.parameters.emplace_back(bucket.data());
    result.gradients.emplace_back(bucket.size(), before);
  }
  for (auto& bucket : result.gradients)
    p.gradients.push_back(bucket.data());
  layers.forward(p, result.loss);
  layers.backward(p);
  return result;
}

/// The values of a parameter; of positions the first ones alone.
std::vector<float> values_of(const network<float>& of, const buckets& all,
                             std::size_t layer, const parameter& p,
                             std::int64_t count) {
  const auto& own = of.layers[layer]->parameter_called(p.name);
  const auto begin = all[layer].begin() + own.offset;
  return {begin, begin + count};
}

} // namespace

TEST_CASE("a network for shorter sequences is one that never had longer ones",
          "[lengths]") {
  const std::string name = GENERATE("gpt", "moe");
  const std::int64_t length = GENERATE(1, 5, 8);
  const float beta = GENERATE(0.0F, 1.0F), before = 2;
  const auto whole = *make_network<float>(model_of(name)),
             shorter = of_length(whole, length),
             never_longer = *make_network<float>(model_of(name, length));
  buckets parameters, own;
  for (std::size_t l = 0; l < whole.layers.size(); ++l) {
    CHECK(shorter.layers[l]->bucket() == whole.layers[l]->bucket());
    parameters.push_back(
      random_values<float>(whole.layers[l]->bucket(), static_cast<unsigned>(l)));
    own.emplace_back(static_cast<std::size_t>(never_longer.layers[l]->bucket()));
    for (const auto& p : never_longer.layers[l]->parameters())
      std::ranges::copy(values_of(whole, parameters, l, p, p.values()),
                        own[l].begin() + p.offset);
  }
  const auto tokens = random_labels(samples * length, 11, 1),
             labels = random_labels(samples * length, 11, 2);
  const auto by_whole = train(shorter, parameters, tokens, labels, beta, before),
             by_own = train(never_longer, own, tokens, labels, beta, before);
  CHECK(by_whole.loss.loss == by_own.loss.loss);
  for (std::size_t l = 0; l < whole.layers.size(); ++l)
    for (const auto& p : never_longer.layers[l]->parameters()) {
      INFO(p.name);
      CHECK(values_of(whole, by_whole.gradients, l, p, p.values())
            == values_of(never_longer, by_own.gradients, l, p, p.values()));
    }
  // Positions that no sequence has learn nothing.
  const auto& places = whole.layers[0]->parameter_called("transformer.wpe.weight");
  const auto of_places =
    values_of(whole, by_whole.gradients, 0, places, places.values());
  for (auto i = static_cast<std::size_t>(length * 8); i < of_places.size(); ++i)
    CHECK(of_places[i] == beta * before);
}

TEST_CASE("of a sample a shorter sequence has the first tokens and labels",
          "[lengths]") {
  const auto model = model_of("gpt");
  const auto whole = *make_network<float>(model);
  const auto data = *open_data("synthetic", model, 3);
  std::vector<std::int32_t> all(longest), answers(longest), tokens(3 * 2),
    labels(3 * 2);
  read_samples(*data, whole, {7, 2}, 3, {tokens.data(), nullptr, labels.data()});
  for (std::int64_t i = 0; i < 2; ++i) {
    data->training(7 + i, {all.data(), nullptr, answers.data()});
    CHECK(std::equal(all.begin(), all.begin() + 3, tokens.begin() + 3 * i));
    CHECK(std::equal(answers.begin(), answers.begin() + 3, labels.begin() + 3 * i));
  }
}

TEST_CASE("uneven microbatches have the samples of a batch in order", "[lengths]") {
  const batching by{.batch = 9,
                    .microbatches = 4,
                    .before = 100,
                    .uneven = std::make_shared<const uneven_microbatches>(
                      uneven_microbatches{.samples = {4, 1, 3, 1}, .lengths = {8, 2}})};
  const std::int64_t first[] = {100, 104, 105, 108, 109, 113, 114, 117, 118};
  for (int k = 0; k < 9; ++k)
    CHECK(by.first_of(k) == first[k]);
  CHECK(by.samples_of(2) == 3);
  CHECK(by.samples_of(5) == 1);
  CHECK(by.length_of(0) == 8);
  CHECK(by.length_of(7) == 2);
  CHECK(by.largest() == 4);
  CHECK(by.shapes() == std::vector<microbatch_shape>{{4, 8}, {1, 2}, {3, 8}});
  CHECK(by.tokens(8) == 4 * 8 + 1 * 2 + 3 * 8 + 1 * 2);
  const batching even{.batch = 9, .microbatches = 4};
  CHECK(even.length_of(3) == 0);
  CHECK(even.tokens(8) == 72);
  CHECK(even.shapes().size() == 2);
}

TEST_CASE("the loss of a sample is a mean, however long it is", "[lengths]") {
  CHECK(of_whole_samples({12, 3}, 8, 0).loss == 12);
  CHECK(of_whole_samples({12, 3}, 8, 8).loss == 12);
  CHECK(of_whole_samples({12, 3}, 8, 2).loss == 48);
}
