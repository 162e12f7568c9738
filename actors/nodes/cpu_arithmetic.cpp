// SPDX-License-Identifier: BSD-3-Clause
#include "actors/nodes/cpu_arithmetic.hpp"

#include "models/data/open_data.hpp"
#include "models/data_identity.hpp"
#include "models/plain_loop.hpp"

#include <span>
#include <vector>

namespace troupe {

namespace {

constexpr std::uint64_t seed = 1;

/// A model with every layer of a transformer, in sizes that no vector register divides.
model_options small_model() {
  return {
    .model = "gpt", .layers = 1, .width = 36, .heads = 3, .length = 7, .words = 43};
}

std::string sum_of(const std::vector<std::vector<float>>& buckets) {
  content_sum sum;
  for (const auto& bucket : buckets)
    sum.add(std::as_bytes(std::span{bucket}));
  return text_of_sum(sum.identity("").checksum);
}

} // namespace

std::string sum_of_first_values() {
  const auto whole = make_network<float>(small_model()).value();
  const auto weights = initial_weights(whole, seed);
  std::vector<std::vector<float>> buckets;
  for (std::size_t l = 0; l < whole.layers.size(); ++l) {
    auto& bucket =
      buckets.emplace_back(static_cast<std::size_t>(whole.layers[l]->bucket()));
    weights(l, bucket.data());
  }
  return sum_of(buckets);
}

std::string sum_of_small_training() {
  const auto model = small_model();
  const auto whole = make_network<float>(model).value();
  const auto data = open_data("synthetic", model, seed).value();
  return sum_of(
    train_plainly({.whole = whole,
                   .first_layers = {0, static_cast<int>(whole.layers.size())},
                   .data = *data,
                   .batches = {.batch = 4, .microbatches = 2},
                   .steps = 2,
                   .sum = {},
                   .made_of = {},
                   .reads = {},
                   .optimizer = {.rate = 0.01, .clip = 0.5},
                   .sum_microbatch = {},
                   .weights = initial_weights(whole, seed),
                   .progress = {}})
      .parameters);
}

} // namespace troupe
