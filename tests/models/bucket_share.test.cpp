// SPDX-License-Identifier: BSD-3-Clause
#include "models/bucket_share.hpp"

#include "models/layers/linear.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <utility>

namespace troupe::bucket_share_test {

TEST_CASE("shares hold every parameter value once, whatever lies between parameters",
          "[optimizer]") {
  const layer_list<float> layers{linear_layer<float>("a", 3, 7, true),
                                 linear_layer<float>("b", 7, 2, false)};
  const int of_a = GENERATE(1, 2, 3, 5, 64), of_b = GENERATE(1, 2, 5);
  std::vector<std::vector<int>> times;
  for (const auto& l : layers)
    times.emplace_back(static_cast<std::size_t>(l->bucket()));
  // Compares each share of a with each share of b.
  for (int i = 0; i < of_a * of_b; ++i)
    for (const auto& part : parts_of(layers, {{i % of_a, of_a}, {i / of_a, of_b}}))
      for (auto value = part.begin; value < part.end; ++value)
        ++times[part.bucket][static_cast<std::size_t>(value)];
  for (std::size_t b = 0; b < layers.size(); ++b)
    for (const auto& p : layers[b]->parameters()) {
      for (auto value = p.offset; value < p.offset + p.values(); ++value)
        CHECK(std::exchange(times[b][static_cast<std::size_t>(value)], 0)
              == (b == 0 ? of_b : of_a));
    }
  for (const auto& bucket : times)
    CHECK(std::ranges::count(bucket, 0) == static_cast<std::ptrdiff_t>(bucket.size()));
}

TEST_CASE("squares are summed a part each", "[optimizer]") {
  const layer_list<float> layers{linear_layer<float>("a", 3, 2, true)};
  const std::vector<float> ones(static_cast<std::size_t>(layers[0]->bucket()), 1);
  stream on;
  CHECK(squares_of(parts_of(layers), {ones.data()}, on) == std::vector<double>{6, 2});
  double sum = 0;
  for (int i = 0; i < 5; ++i)
    for (const double squares :
         squares_of(parts_of(layers, {{i, 5}}), {ones.data()}, on))
      sum += squares;
  CHECK(sum == 8);
}

} // namespace troupe::bucket_share_test
