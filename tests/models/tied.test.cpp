// SPDX-License-Identifier: BSD-3-Clause
// Tied networks: the head's matrix and the embedding's matrix are one parameter, held
// twice.

#include "models/data/open_data.hpp"
#include "models/plain_loop.hpp"
#include "tests/models/network_run.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cmath>
#include <functional>
#include <iterator>
#include <numeric>
#include <span>

namespace troupe::tied_test {

namespace {

const model_options tiny{.model = "gpt",
                         .layers = 3,
                         .width = 8,
                         .heads = 2,
                         .length = 5,
                         .words = 11,
                         .experts = {.count = 3, .balance = 0},
                         .tied = true};

model_options untied(model_options o) {
  o.tied = false;
  return o;
}

std::vector<float> values_at(const std::vector<std::vector<float>>& buckets,
                             const tied_matrix::location& at, std::int64_t n) {
  const auto* const begin = buckets[at.layer].data() + at.offset;
  return {begin, begin + n};
}

} // namespace

TEST_CASE("the gradient of a tied matrix is that of its two copies, added", "[tied]") {
  auto options = tiny;
  options.model = GENERATE("gpt", "moe");
  const auto whole = *make_network<double>(options);
  network_run run{whole, *cut(whole, 2, {}), false};
  const auto copies_in = [&](std::vector<std::vector<double>>& buckets) {
    const auto copy = [&](std::size_t l, const char* name) {
      const auto& p = whole.layers[l]->parameter_called(name);
      return std::span{buckets[l]}.subspan(static_cast<std::size_t>(p.offset),
                                           static_cast<std::size_t>(p.values()));
    };
    return std::pair{copy(0, "transformer.wte.weight"),
                     copy(buckets.size() - 1, "lm_head.weight")};
  };
  const auto copies = copies_in(run.parameters), gradients = copies_in(run.gradients);
  const auto loss_of = [&](const std::vector<double>& matrix) {
    for (const auto& copy : {copies.first, copies.second})
      std::ranges::copy(matrix, copy.begin());
    return run.run() / static_cast<double>(whole.rows); // means over predictions
  };
  const std::vector<double> matrix{copies.first.begin(), copies.first.end()};
  const auto expected = finite_differences(loss_of, matrix);
  loss_of(matrix);
  std::vector<double> sum;
  std::ranges::transform(gradients.first, gradients.second, std::back_inserter(sum),
                         std::plus{});
  CHECK(sum.size() == 11 * 8);
  CHECK(relative_difference(sum, expected) < 1e-7);
}

TEST_CASE("only tied networks have a tied matrix", "[tied]") {
  CHECK_FALSE(make_network<float>(untied(tiny))->tied().has_value());
  CHECK_FALSE(make_network<float>({"lenet"})->tied().has_value());
  auto moe = tiny;
  moe.model = "moe";
  const auto whole = make_network<float>(moe)->tied();
  const auto without = make_without_experts<float>(moe).tied();
  REQUIRE((whole && without));
  CHECK(without->head.layer == whole->head.layer);
  CHECK(without->head.offset == whole->head.offset);
  CHECK(without->values == whole->values);
}

TEST_CASE("each tensor shard has the same words of both copies", "[tied]") {
  const int count = GENERATE(2, 3, 4, 6);
  const bool by_sequence = GENERATE(false, true);
  const model_options options{
    .layers = 2, .width = 24, .heads = 12, .length = 12, .words = 13, .tied = true};
  const auto whole = *make_network<float>(options);
  std::vector<std::vector<float>> buckets;
  for (const auto& l : whole.layers)
    buckets.emplace_back(static_cast<std::size_t>(l->bucket()));
  const auto at = *whole.tied();
  for (const auto& place : {at.embedding, at.head})
    std::iota(buckets[place.layer].begin() + place.offset,
              buckets[place.layer].begin() + place.offset + at.values, 0.0F);
  float next = 0; // every value of the matrix occurs once, in order
  const auto shards = *make_shards<float>(options, count, by_sequence);
  for (const auto& shard : shards) {
    const auto tied = shard.tied();
    REQUIRE(tied.has_value());
    std::vector<std::vector<float>> own;
    for (std::size_t l = 0; l < shard.layers.size(); ++l) {
      own.emplace_back(static_cast<std::size_t>(shard.layers[l]->bucket()));
      extract_shard(*whole.layers[l], *shard.layers[l], buckets[l].data(),
                    own[l].data());
    }
    const auto embedding = values_at(own, tied->embedding, tied->values);
    CHECK(values_at(own, tied->head, tied->values) == embedding);
    for (const float value : embedding)
      CHECK(value == next++);
  }
  CHECK(next == 13 * 24);
}

TEST_CASE("a norm counts a tied matrix once, in any shares", "[tied]") {
  // C 8, T 5, V 11: 3 blocks of 12 C^2 + 13 C values, then a norm of 2 C.
  const double once = 11 * 8 + 5 * 8 + 3 * (12 * 64 + 13 * 8) + 2 * 8, head = 11 * 8;
  for (const bool tied : {false, true}) {
    const auto whole = *make_network<float>(tied ? tiny : untied(tiny));
    std::vector<std::vector<float>> ones;
    for (const auto& l : whole.layers)
      ones.emplace_back(static_cast<std::size_t>(l->bucket()), 1.0F);
    for (const int shares : {1, 5}) {
      stream on;
      double sum = 0;
      for (int i = 0; i < shares; ++i)
        for (const double squares : squares_of(
               parts_of(whole.layers, bucket_shares(whole.layers.size(), {i, shares})),
               readable(ones), on))
          sum += squares;
      CHECK(sum == (tied ? once : once + head));
    }
  }
}

namespace {

plain_plan plan_of(const network<float>& whole, const data_set& data, int stages) {
  return {.whole = whole,
          .first_layers = *cut(whole, stages, {}),
          .data = data,
          .batches = {10, 4},
          .steps = 5,
          .optimizer = {.rate = 0.01, .weight_decay = 0.1},
          .weights = initial_weights(whole, 5)};
}

} // namespace

TEST_CASE("both copies get the head's sum plus the embedding's", "[tied]") {
  const auto data = *open_data("synthetic", tiny, 3);
  const auto whole = *make_network<float>(tiny),
             apart = *make_network<float>(untied(tiny));
  auto plan = plan_of(whole, *data, 2), other = plan_of(apart, *data, 2);
  other.weights = plan.weights;
  plan.replicas = other.replicas = GENERATE(1, 2);
  plan.steps = other.steps = 1;
  const auto at = *whole.tied();
  const auto both = train_plainly(plan).gradients,
             each = train_plainly(other).gradients;
  const auto head = values_at(each, at.head, at.values);
  auto sum = values_at(each, at.embedding, at.values);
  CHECK(head != sum);
  for (std::size_t i = 0; i < sum.size(); ++i)
    sum[i] = head[i] + sum[i];
  CHECK(values_at(both, at.head, at.values) == sum);
  CHECK(values_at(both, at.embedding, at.values) == sum);
  for (std::size_t l = 1; l + 1 < both.size(); ++l)
    CHECK(both[l] == each[l]);
}

TEST_CASE("copies stay equal to the bit, however many stages lie between", "[tied]") {
  const auto data = *open_data("synthetic", tiny, 3);
  const auto whole = *make_network<float>(tiny);
  const auto at = *whole.tied();
  const bool delayed = GENERATE(false, true);
  std::vector<trained> all;
  for (const int stages : {1, 2, 3}) {
    auto plan = plan_of(whole, *data, stages);
    plan.optimizer.clip = 0.5;
    if (delayed)
      plan.reads = [](int, int k) { return std::max(0, k / 4 - 1); };
    all.push_back(train_plainly(plan));
    const auto& after = all.back().parameters;
    CHECK(values_at(after, at.head, at.values)
          == values_at(after, at.embedding, at.values));
    CHECK(all.back().loss == all.front().loss);
    CHECK(after == all.front().parameters);
  }
  CHECK(all[0].loss.back() < all[0].loss.front());
}

TEST_CASE("clipping bounds the step of a network whose matrix counts once", "[tied]") {
  const auto data = *open_data("synthetic", tiny, 3);
  const auto whole = *make_network<float>(tiny);
  auto plan = plan_of(whole, *data, 2);
  plan.steps = 1;
  plan.optimizer = {.name = "sgd", .rate = 1, .clip = 0.01};
  const auto after = train_plainly(plan).parameters;
  double sum = 0;
  for (std::size_t l = 0; l < after.size(); ++l) {
    std::vector<float> before(after[l].size());
    plan.weights(l, before.data());
    for (const auto& p : whole.layers[l]->parameters())
      for (auto i = p.offset; p.name != "lm_head.weight" && i < p.offset + p.values();
           ++i)
        sum += std::pow(static_cast<double>(after[l][static_cast<std::size_t>(i)]
                                            - before[static_cast<std::size_t>(i)]),
                        2);
  }
  CHECK(std::abs(std::sqrt(sum) - 0.01) < 1e-4);
}

} // namespace troupe::tied_test
