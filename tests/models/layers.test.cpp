// SPDX-License-Identifier: BSD-3-Clause
// Every layer in double compared with finite differences, alone and as slices of a
// network.

#include "models/layers/conv_pool.hpp"
#include "models/layers/gpt.hpp"
#include "models/layers/linear.hpp"
#include "models/layers/moe.hpp"
#include "tests/models/network_run.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

namespace troupe::layers_test {

namespace {

constexpr gpt_shape tiny{2, 8, 2, 5, 11};

/// A layer on random inputs, in the form that the check by finite differences needs.
struct layer_run {
  explicit layer_run(std::shared_ptr<const layer<double>> l)
    : what(std::move(l)),
      sizes(what->sizes(samples, 1)),
      x(random_values<double>(samples * what->input(), 1)),
      parameters(random_bucket(*what, 2)),
      dy(random_values<double>(samples * what->output(), 3)),
      y(dy.size()),
      dx(x.size(), 77),
      gradients(parameters.size()),
      saved(static_cast<std::size_t>(sizes.saved)),
      kept(static_cast<std::size_t>(sizes.kept)),
      scratch(static_cast<std::size_t>(sizes.scratch)) {
    // nop
  }

  frame<double> as_frame(double beta = 0) {
    return {.samples = samples,
            .first = 0,
            .tokens = tokens.data(),
            .x = x.data(),
            .y = y.data(),
            .saved = saved.data(),
            .dy = dy.data(),
            .dx = dx.data(),
            .kept = kept.data(),
            .parameters = parameters.data(),
            .gradients = gradients.data(),
            .beta = beta,
            .scratch = scratch.data(),
            .compute_stream = &on};
  }

  double loss() {
    what->forward(as_frame());
    return dot(y, dy);
  }

  void backward(double beta = 0) {
    what->input_gradient(as_frame(beta));
    what->weight_gradient(as_frame(beta));
  }

  std::shared_ptr<const layer<double>> what;
  layer_sizes sizes;
  std::vector<std::int32_t> tokens =
    random_labels(samples * tiny.length, tiny.words, 4);
  std::vector<double> x, parameters, dy, y, dx, gradients, saved, kept, scratch;
  stream on;
};

std::vector<std::shared_ptr<const layer<double>>> all_layers() {
  return {
    embedding_layer<double>(tiny),
    attention_layer<double>(tiny, 0),
    feed_forward_layer<double>(tiny, 1),
    head_layer<double>(tiny),
    linear_layer<double>("fc1", 6, 7, true),
    linear_layer<double>("fc2", 6, 7, false),
    conv_pool_layer<double>("conv1", {1, 2, 10, 10, 3, 5}),
    conv_pool_layer<double>("conv1", {1, 2, 8, 6, 3, 5, 2}),
    moe_layer<double>(tiny, 1, {.count = 3, .balance = 0}, expert_location::local),
    moe_layer<double>(
      tiny, 1, {.count = 4, .chosen = 2, .capacity = 0.7, .balance = 0, .shared = true},
      expert_location::local)};
}

} // namespace

TEST_CASE("gradients of every layer are those of finite differences", "[layers]") {
  const auto number = GENERATE(range(0, 10));
  layer_run run{all_layers()[static_cast<std::size_t>(number)]};
  CAPTURE(run.what->parameters()[0].name);
  run.loss();
  run.backward();
  const auto with = [&](std::vector<double> layer_run::*which) {
    return [&run, which](const std::vector<double>& values) {
      const auto saved = std::exchange(run.*which, values);
      const double result = run.loss();
      run.*which = saved;
      return result;
    };
  };
  const auto gradients = run.gradients, dx = run.dx;
  CHECK(relative_difference(
          gradients, finite_differences(with(&layer_run::parameters), run.parameters))
        < 1e-7);
  if (number != 0) // tokens have no gradient
    CHECK(relative_difference(dx, finite_differences(with(&layer_run::x), run.x))
          < 1e-7);
}

TEST_CASE("a second microbatch adds to the gradients of the first", "[layers]") {
  const auto number = GENERATE(range(0, 10));
  layer_run run{all_layers()[static_cast<std::size_t>(number)]};
  run.loss();
  run.backward(0);
  auto twice = run.gradients;
  for (auto& g : twice)
    g *= 2;
  run.backward(1);
  CHECK(relative_difference(run.gradients, twice) < 1e-12);
  run.backward(0);
  run.backward(1);
  CHECK(relative_difference(run.gradients, twice) < 1e-12);
}

TEST_CASE("a layer that computes more costs more operations", "[layers]") {
  const auto wide = attention_layer<double>({2, 16, 2, 5, 11}, 0);
  CHECK(wide->operations() > attention_layer<double>(tiny, 0)->operations());
  for (const auto& l : all_layers())
    CHECK(l->operations() > 0);
}

namespace {

network<double> tiny_network(const std::string& name) {
  return *make_network<double>({name, 3, 8, 2, 5, 11});
}

} // namespace

TEST_CASE("gradients of whole networks are those of finite differences", "[slice]") {
  const std::string name = GENERATE("gpt", "mlp", "lenet", "lenet5");
  const auto whole = tiny_network(name);
  network_run run{whole, *cut(whole, 2, {}), false};
  run.run();
  const auto gradients = run.gradients;
  for (std::size_t l = 0; l < whole.layers.size(); ++l)
    for (const auto& p : whole.layers[l]->parameters()) {
      CAPTURE(p.name);
      // The loss is a sum over samples of means over predictions.
      const double rows = static_cast<double>(whole.rows);
      for (const auto i : {std::int64_t{0}, p.values() / 3, p.values() - 1}) {
        auto& value = run.parameters[l][static_cast<std::size_t>(p.offset + i)];
        const double saved = value, h = 1e-6;
        value = saved + h;
        const double above = run.run() / rows;
        value = saved - h;
        const double below = run.run() / rows;
        value = saved;
        const double expected = (above - below) / (2 * h);
        CHECK(std::abs(gradients[l][static_cast<std::size_t>(p.offset + i)] - expected)
              < 1e-6 * std::max(1.0, std::abs(expected)));
      }
    }
}

TEST_CASE("cuts and split backwards do not change a bit", "[slice]") {
  const std::string name = GENERATE("gpt", "mlp", "lenet", "lenet5");
  const auto whole = tiny_network(name);
  network_run alone{whole, *cut(whole, 1, {}), false};
  const double loss = alone.run();
  for (int stages = 1; stages <= 3; ++stages)
    for (const bool split : {false, true}) {
      network_run cut_up{whole, *cut(whole, stages, {}), split};
      CHECK(cut_up.run() == loss);
      CHECK(cut_up.gradients == alone.gradients);
    }
}

} // namespace troupe::layers_test
