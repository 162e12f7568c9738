// SPDX-License-Identifier: BSD-3-Clause
#include "models/gradient_buckets.hpp"

#include "models/network.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>

namespace troupe::gradient_buckets_test {

namespace {

const model_options options{"moe", 2, 8, 2, 4, 11, {.count = 3}};
const network<float> whole = *make_network<float>(options);
const network<float> bare = make_without_experts<float>(options);

/// Whether an index is inside a parameter, not in the padding between two parameters.
bool is_value(const layer<float>& of, std::int64_t i) {
  for (const auto& p : of.parameters())
    if (i >= p.offset && i < p.offset + p.values())
      return true;
  return false;
}

/// The index of the layer with experts; parts() returns the buckets of that layer.
std::size_t layer_with_experts() {
  return whole.experts.front().of_layer;
}

std::vector<gradient_bucket> parts() {
  std::vector<gradient_bucket> result{{bare.layers[layer_with_experts()]}};
  for (const auto& expert : whole.experts)
    result.push_back({expert.expert});
  return result;
}

/// The buckets, each measured in equal shares by `shares` replicas.
std::vector<gradient_bucket> shared_out(std::vector<gradient_bucket> all, int shares) {
  for (auto& one : all) {
    one.measured.clear();
    for (int i = 0; i < shares; ++i)
      one.measured.emplace_back(bucket_share{i, shares});
  }
  return all;
}

} // namespace

TEST_CASE("a layer with experts is summed bucket by bucket, each from its own start",
          "[gradient_buckets]") {
  const auto layer = whole.layers[layer_with_experts()];
  const gradient_buckets buckets{{layer}, {parts()}};
  std::vector<float> a(static_cast<std::size_t>(layer->bucket()), 1), b(a.size(), 2);
  std::vector<std::int64_t> sizes;
  // Doubles the first value of each bucket, to show where a bucket begins.
  buckets.sum(0, {a.data(), b.data()},
              [&](const std::vector<float*>& arrays, std::int64_t n) {
                sizes.push_back(n);
                for (std::int64_t i = 0; i < n; ++i)
                  arrays[0][i] += arrays[1][i];
                arrays[0][0] *= 2;
              });
  std::vector<std::int64_t> expected;
  std::vector<std::int64_t> begins;
  for (const auto& [part, measured] : parts()) {
    expected.push_back(part->bucket());
    begins.push_back(layer->parameter_called(part->parameters().front().name).offset);
  }
  CHECK(sizes == expected);
  for (std::int64_t i = 0; i < layer->bucket(); ++i)
    if (is_value(*layer, i))
      CHECK(a[static_cast<std::size_t>(i)]
            == (std::ranges::find(begins, i) != begins.end() ? 6 : 3));
}

TEST_CASE("norms go share by share of every bucket", "[gradient_buckets]") {
  const auto layer = whole.layers[layer_with_experts()];
  const gradient_buckets whole_parts{{layer}, {parts()}},
    apart{{layer}, {shared_out(parts(), 3)}},
    together{{layer}, {shared_out({{layer}}, 3)}};
  std::vector<float> values(static_cast<std::size_t>(layer->bucket()));
  double sum = 0;
  for (std::int64_t i = 0; i < layer->bucket(); ++i)
    if (is_value(*layer, i)) {
      values[static_cast<std::size_t>(i)] = static_cast<float>(i % 5);
      sum += static_cast<double>(i % 5) * static_cast<double>(i % 5);
    }
  const auto total = [&](const std::vector<double>& squares) {
    double result = 0;
    for (const double s : squares)
      result += s;
    return result;
  };
  stream on;
  CHECK(total(whole_parts.squares({values.data()}, on)) == sum);
  CHECK(total(apart.squares({values.data()}, on)) == sum);
  CHECK(total(together.squares({values.data()}, on)) == sum);
  // The first value of the first expert is in the first share of the expert's bucket.
  // In the layer's bucket the value is in a later share.
  std::ranges::fill(values, 0.0F);
  const auto first =
    layer->parameter_called(whole.experts.front().expert->parameters().front().name)
      .offset;
  values[static_cast<std::size_t>(first)] = 1;
  const auto place = [&](const std::vector<double>& squares) {
    return std::ranges::find(squares, 1.0) - squares.begin();
  };
  CHECK(place(apart.squares({values.data()}, on))
        < place(together.squares({values.data()}, on)));
}

TEST_CASE("a norm goes measurer by measurer, each through its own buckets",
          "[gradient_buckets]") {
  // Two layers, each with experts e0 e1 e2. The first measurer has the first halves of
  // the layers' own buckets, and both e0. The second has the other halves, and both e1
  // and e2.
  const auto layer = whole.layers[layer_with_experts()];
  auto made_of = parts();
  made_of[0].measured = {bucket_share{0, 2}, bucket_share{1, 2}};
  made_of[1].measured = {bucket_share{}, std::nullopt};
  made_of[2].measured = made_of[3].measured = {std::nullopt, bucket_share{}};
  const gradient_buckets buckets{{layer, layer}, {made_of, made_of}};
  std::vector<float> first(static_cast<std::size_t>(layer->bucket())),
    second(first.size());
  // The first bias of each expert's second product: 1, 2, 3 and then 4, 5, 6.
  for (int e = 0; e < 3; ++e) {
    const auto& last = whole.experts[static_cast<std::size_t>(e)].expert->parameters();
    const auto at =
      static_cast<std::size_t>(layer->parameter_called(last.back().name).offset);
    first[at] = static_cast<float>(e + 1);
    second[at] = static_cast<float>(e + 4);
  }
  stream on;
  auto squares = buckets.squares({first.data(), second.data()}, on);
  std::erase(squares, 0.0);
  CHECK(squares == std::vector<double>{1, 16, 4, 9, 25, 36});
}

} // namespace troupe::gradient_buckets_test
