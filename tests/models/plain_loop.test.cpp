// SPDX-License-Identifier: BSD-3-Clause
#include "models/plain_loop.hpp"

#include "models/data/open_data.hpp"
#include "models/evaluation.hpp"

#include <catch2/catch_test_macros.hpp>

#include <atomic>
#include <cmath>

namespace troupe::plain_loop_test {

namespace {

const model_options tiny{"gpt", 3, 16, 2, 8, 13};
const network<float> whole = *make_network<float>(tiny);
const auto data = *open_data("synthetic", tiny, 3);

plain_plan plan_of(int stages) {
  return {.whole = whole,
          .first_layers = *cut(whole, stages, {}),
          .data = *data,
          .batches = {10, 4},
          .steps = 6,
          .optimizer = {.rate = 0.01},
          .weights = initial_weights(whole, 5)};
}

void check_equal(const trained& a, const trained& b) {
  CHECK(a.loss == b.loss);
  CHECK(a.parameters == b.parameters);
  CHECK(a.gradients == b.gradients);
}

} // namespace

TEST_CASE("the number of stages and of threads does not change a bit", "[plain_loop]") {
  const auto expected = train_plainly(plan_of(1));
  CHECK(expected.loss.size() == 6);
  CHECK(expected.loss.back() < expected.loss.front());
  for (const int stages : {2, 3})
    check_equal(train_plainly(plan_of(stages)), expected);
  auto threaded = plan_of(2);
  threaded.threads = 3;
  check_equal(train_plainly(threaded), expected);
}

TEST_CASE("microbatches make the batch's gradient, whatever their number",
          "[plain_loop]") {
  auto whole_batch = plan_of(1), pieces = plan_of(1);
  whole_batch.batches.microbatches = 1;
  whole_batch.steps = pieces.steps = 1;
  const auto a = train_plainly(whole_batch), b = train_plainly(pieces);
  CHECK(std::abs(a.loss[0] - b.loss[0]) < 1e-6);
  double difference = 0, norm = 0;
  for (std::size_t l = 0; l < a.gradients.size(); ++l)
    for (std::size_t i = 0; i < a.gradients[l].size(); ++i) {
      const double x = static_cast<double>(a.gradients[l][i]);
      const double y = static_cast<double>(b.gradients[l][i]);
      difference += (x - y) * (x - y);
      norm += x * x;
    }
  CHECK(difference < 1e-12 * norm);
}

TEST_CASE("one step back in versions is delayed gradient descent", "[plain_loop]") {
  auto delayed = plan_of(2);
  delayed.optimizer = {.name = "sgd", .rate = 0.1};
  delayed.reads = [](int, int m) { return std::max(0, m / 4 - 1); };
  delayed.steps = 1;
  const auto one = train_plainly(delayed); // W1 = W0 - lr g1(W0)
  delayed.steps = 2;
  const auto two = train_plainly(delayed); // W2 = W1 - lr g2(W0)
  auto still = delayed;
  still.optimizer.rate = 0;
  CHECK(two.gradients == train_plainly(still).gradients); // g2 at W0, not at W1
  for (std::size_t l = 0; l < two.parameters.size(); ++l)
    for (std::size_t i = 0; i < two.parameters[l].size(); ++i) {
      const float expected = one.parameters[l][i] - 0.1F * two.gradients[l][i] / 10;
      CHECK(std::abs(two.parameters[l][i] - expected)
            <= 1e-6F * std::abs(expected) + 1e-8F);
    }
}

TEST_CASE("updates may cover a part of a batch, and a rest at the end",
          "[plain_loop]") {
  auto often = plan_of(2);
  often.update_every = 5;
  CHECK(train_plainly(often).loss.size() == 5); // 24 microbatches: 5, 5, 5, 5, 4
}

TEST_CASE("clipping bounds the step, of the network or of each stage", "[plain_loop]") {
  auto free = plan_of(2), clipped = plan_of(2), by_stage = plan_of(2);
  for (auto* p : {&free, &clipped, &by_stage}) {
    p->steps = 1;
    p->optimizer = {.name = "sgd", .rate = 1};
  }
  clipped.optimizer.clip = by_stage.optimizer.clip = 0.01;
  by_stage.optimizer.scope = clip_scope::stage;
  const auto length_of_step = [&](const plain_plan& p) {
    const auto after = train_plainly(p).parameters;
    double sum = 0;
    for (std::size_t l = 0; l < after.size(); ++l) {
      std::vector<float> before(after[l].size());
      p.weights(l, before.data());
      for (std::size_t i = 0; i < before.size(); ++i)
        sum += std::pow(static_cast<double>(after[l][i] - before[i]), 2);
    }
    return std::sqrt(sum);
  };
  CHECK(length_of_step(free) > 0.1);
  CHECK(std::abs(length_of_step(clipped) - 0.01) < 1e-4);
  CHECK(std::abs(length_of_step(by_stage) - 0.01 * std::sqrt(2)) < 1e-4);
}

TEST_CASE("evaluation is the mean over held-out samples, in any batches",
          "[evaluation]") {
  std::vector<std::vector<float>> buckets;
  std::vector<const float*> parameters;
  for (std::size_t l = 0; l < whole.layers.size(); ++l) {
    buckets.emplace_back(static_cast<std::size_t>(whole.layers[l]->bucket()));
    initial_weights(whole, 5)(l, buckets.back().data());
  }
  for (const auto& b : buckets)
    parameters.push_back(b.data());
  evaluator wide{whole, *data, 20, 20, 1}, narrow{whole, *data, 20, 3, 1};
  CHECK(wide.samples() == 20);
  const auto a = *wide.evaluate(parameters), b = *narrow.evaluate(parameters);
  CHECK(std::abs(a.loss - b.loss) < 1e-6);
  CHECK(std::abs(a.loss - std::log(13)) < 0.3);
  CHECK_FALSE(a.accuracy.has_value());
  const auto lenet = *make_network<float>({"lenet"});
  const auto images = *open_data("synthetic", {"lenet"}, 1);
  buckets.clear();
  parameters.clear();
  for (std::size_t l = 0; l < lenet.layers.size(); ++l) {
    buckets.emplace_back(static_cast<std::size_t>(lenet.layers[l]->bucket()));
    initial_weights(lenet, 5)(l, buckets.back().data());
  }
  for (const auto& b2 : buckets)
    parameters.push_back(b2.data());
  evaluator classifier{lenet, *images, 1000, 64, 1};
  CHECK(classifier.samples() == 256);
  const auto accuracy = classifier.evaluate(parameters)->accuracy;
  REQUIRE(accuracy.has_value());
  CHECK(*accuracy < 0.4);
  std::atomic<bool> stopped = true;
  CHECK_FALSE(classifier.evaluate(parameters, &stopped).has_value());
}

} // namespace troupe::plain_loop_test
