// SPDX-License-Identifier: BSD-3-Clause
// A layer with experts, compared with the definitions of the layer's papers.

#include "tests/dice.hpp"
#include "tests/kernels/numbers.hpp"
#include "tests/models/plain_moe.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <algorithm>
#include <array>

namespace troupe::moe_definition_test {

namespace {

#ifdef TROUPE_SANITIZED
constexpr int layers = 6;
#else
constexpr int layers = 20;
#endif

/// A layer with local experts, at random sizes, options, parameters and inputs.
struct some_layer {
  explicit some_layer(unsigned seed) {
    dice d{seed};
    dims = {2, 2 * d.number(1, 2), 1, d.number(3, 6), 7};
    options = {.count = d.number(2, 4),
               .capacity = d.one_of(std::array{0.5, 1.0, 1.25, 8.0}),
               .balance = d.coin() ? 0.3 : 0,
               .noise = d.coin() ? 0.7 : 0,
               .shared = d.coin(),
               .seed = seed};
    options.chosen = d.number(1, std::min(options.count, 3));
    samples = d.number(1, 3);
    first = d.number(0, 40);
    block = 2 * d.number(0, 3) + 1;
    dims.known = d.coin() ? 0 : dims.length + d.number(1, 3);
    what = moe_layer<double>(dims, block, options, expert_location::local);
    bucket = random_values<double>(what->bucket(), seed + 1);
    for (auto& value : bucket)
      value *= 0.5;
    x = random_values<double>(samples * what->input(), seed + 2);
    dy = random_values<double>(samples * what->output(), seed + 3);
  }

  plain::moe definition() const { return {dims, block, options, *what}; }

  /// The objective whose gradient the backward computes. The first term is `dy . y`,
  /// for the layers above. The second is the balance of the microbatch, times the
  /// number of samples.
  double objective(const std::vector<double>& at_bucket,
                   const std::vector<double>& at_x) const {
    const auto result = definition().forward(at_bucket, at_x, first);
    return dot(result.y, dy)
           + static_cast<double>(samples) * options.balance * result.balance;
  }

  gpt_shape dims{};
  expert_options options;
  std::int64_t samples, first;
  int block;
  std::shared_ptr<const layer<double>> what;
  std::vector<double> bucket, x, dy;
};

/// The passes of the layer under test.
struct layer_run {
  layer_run(const some_layer& of, std::int64_t first) {
    const auto sizes = of.what->sizes(of.samples, 1);
    y.resize(of.dy.size());
    dx.resize(of.x.size());
    gradients.resize(of.bucket.size());
    std::vector<double> saved(static_cast<std::size_t>(sizes.saved)),
      kept(static_cast<std::size_t>(sizes.kept)),
      scratch(static_cast<std::size_t>(sizes.scratch));
    stream on;
    const frame<double> f{.samples = of.samples,
                          .first = first,
                          .x = of.x.data(),
                          .y = y.data(),
                          .saved = saved.data(),
                          .dy = of.dy.data(),
                          .dx = dx.data(),
                          .kept = kept.data(),
                          .parameters = of.bucket.data(),
                          .gradients = gradients.data(),
                          .scratch = scratch.data(),
                          .compute_stream = &on};
    of.what->forward(f);
    of.what->input_gradient(f);
    of.what->weight_gradient(f);
  }

  std::vector<double> y, dx, gradients;
};

} // namespace

TEST_CASE("experts, their gate and its gradient are the papers'", "[experts]") {
  const some_layer some{static_cast<unsigned>(GENERATE(range(0, layers)))};
  CAPTURE(some.options.count, some.options.chosen, some.options.capacity,
          some.options.balance, some.options.noise, some.options.shared);
  const auto exact = some.definition().forward(some.bucket, some.x, some.first);
  REQUIRE(exact.margin > 1e-5); // or finite differences might change a gate's choice
  const layer_run run{some, some.first};
  CHECK(relative_difference(run.y, exact.y) < 1e-12);
  CHECK(
    relative_difference(
      run.dx, finite_differences(
                [&](const auto& x) { return some.objective(some.bucket, x); }, some.x))
    < 1e-7);
  CHECK(relative_difference(run.gradients, finite_differences(
                                             [&](const auto& bucket) {
                                               return some.objective(bucket, some.x);
                                             },
                                             some.bucket))
        < 1e-7);
}

TEST_CASE("an evaluation knows neither noise nor full experts", "[experts]") {
  const some_layer some{static_cast<unsigned>(GENERATE(range(0, layers)))};
  const layer_run run{some, -1};
  const auto exact = some.definition().forward(some.bucket, some.x, -1);
  CHECK(exact.dropped == 0);
  CHECK(relative_difference(run.y, exact.y) < 1e-12);
}

TEST_CASE("the layers of these tests drop some tokens, and not all", "[experts]") {
  int with = 0, without = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    const some_layer some{seed};
    const auto rows = some.samples * some.dims.length * some.options.chosen;
    const auto dropped =
      some.definition().forward(some.bucket, some.x, some.first).dropped;
    CHECK(dropped < rows);
    ++(dropped > 0 ? with : without);
  }
  CHECK(with > 10);
  CHECK(without > 10);
}

} // namespace troupe::moe_definition_test
