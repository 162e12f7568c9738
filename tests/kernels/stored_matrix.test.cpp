// SPDX-License-Identifier: BSD-3-Clause
// Kernels that read and write rows of bf16: the results are those for the same values
// in fp32, rounded.

#include "kernels/stored_matrix.hpp"

#include "kernels/arrays.hpp"
#include "kernels/attention.hpp"
#include "kernels/bias.hpp"
#include "kernels/embedding.hpp"
#include "kernels/layer_norm.hpp"
#include "kernels/relu.hpp"
#include "kernels/relu_pool.hpp"
#include "tests/kernels/numbers.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <vector>

namespace troupe::stored_matrix_test {

namespace {

/// The same values as fp32 and as bf16.
struct twins {
  std::vector<float> wide;
  std::vector<bf16> half;

  explicit twins(std::int64_t values, unsigned seed = 0)
    : wide(static_cast<std::size_t>(values)), half(wide.size()) {
    if (seed != 0)
      wide = random_values<float>(values, seed);
    round_row(wide.data(), values, half.data());
    widen_row(half.data(), values, wide.data());
  }

  /// Whether all bf16 values are the fp32 values, rounded to bf16.
  bool agree() const {
    for (std::size_t i = 0; i < wide.size(); ++i)
      if (half[i].bits != bf16_of(wide[i]))
        return false;
    return true;
  }
};

constexpr std::int64_t R = 37, C = 70;

} // namespace

TEST_CASE("norms, biases and units of rows of bf16 are those of fp32, rounded",
          "[stored]") {
  stream on{GENERATE(1, 3)};
  const twins x{R * C, 1}, dy{R * C, 2};
  const auto gain = random_values<float>(C, 3), shift = random_values<float>(C, 4);
  twins y{R * C}, dx{R * C}, sum{R * C}, passed{R * C}, copied{R * C};
  std::vector<float> mean(R), rstd(R), dgain(C), dshift(C), dbias(C);
  const auto product = random_values<float>(R * C, 5);
  const auto mask = [] {
    std::vector<std::uint8_t> result;
    for (std::int64_t i = 0; i < R * C; ++i)
      result.push_back(i % 3 == 0);
    return result;
  }();
  const auto all = [&](auto member) {
    const auto rows = [&](auto& of) { return dense((of.*member).data(), R, C); };
    layer_norm<float>::forward(rows(x), gain.data(), shift.data(), rows(y), mean.data(),
                               rstd.data(), on);
    layer_norm<float>::input_gradient(rows(x), gain.data(), mean.data(), rstd.data(),
                                      rows(dy), rows(x), rows(dx), on);
    layer_norm<float>::weight_gradient(rows(x), mean.data(), rstd.data(), rows(dy), 0,
                                       dgain.data(), dshift.data(), on);
    bias<float>::gradient(rows(dy), 0, dbias.data(), on);
    bias<float>::add_with_residual(dense(product.data(), R, C), shift.data(), rows(x),
                                   rows(sum), on);
    relu<float>::backward(rows(dy), dense(mask.data(), R, C), rows(passed), on);
    arrays<float>::copy(rows(x), rows(copied), on);
    return std::vector{mean, rstd, dgain, dshift, dbias};
  };
  const auto exact = all(&twins::wide);
  CHECK((all(&twins::half) == exact)); // sums of rows and columns are not rounded
  for (const auto* made : {&y, &dx, &sum, &passed, &copied})
    CHECK(made->agree());
  CHECK(y.wide[3] != 0);
  CHECK((copied.wide == x.wide));
}

TEST_CASE("embeddings and pooling of bf16 are those of fp32, rounded", "[stored]") {
  stream on{GENERATE(1, 2)};
  const embedding<float>::shape dims{3, 5, C, 7, 0, false};
  const auto tokens = random_labels(15, 7, 1);
  const auto words = random_values<float>(7 * C, 2),
             places = random_values<float>(5 * C, 3);
  twins y{15 * C}, dy{15 * C, 4};
  std::vector<float> dwords(7 * C), dplaces(5 * C), again(7 * C), places_again(5 * C);
  embedding<float>::forward(dims, tokens.data(), dense(words.data(), 7, C),
                            dense(places.data(), 5, C), dense(y.half.data(), 15, C),
                            on);
  for (std::int64_t r = 0; r < 15; ++r)
    for (std::int64_t c = 0; c < C; ++c) {
      const auto at = [&](const std::vector<float>& table, std::int64_t row) {
        return table[static_cast<std::size_t>(row * C + c)];
      };
      REQUIRE(
        y.half[static_cast<std::size_t>(r * C + c)].bits
        == bf16_of(at(words, tokens[static_cast<std::size_t>(r)]) + at(places, r % 5)));
    }
  embedding<float>::gradient(dims, tokens.data(), dense(dy.wide.data(), 15, C), 0,
                             dwords.data(), dplaces.data(), on);
  embedding<float>::gradient(dims, tokens.data(), dense(dy.half.data(), 15, C), 0,
                             again.data(), places_again.data(), on);
  CHECK((again == dwords));
  CHECK((places_again == dplaces));

  const auto pixels = random_values<float>(2 * 6 * 8, 5);
  twins pooled{2 * 3 * 4}, upper{2 * 3 * 4, 6};
  std::vector<std::uint8_t> choice(24);
  std::vector<float> down(2 * 6 * 8), down_again(down.size());
  for (const bool half : {false, true}) {
    const auto rows = [&](twins& of) -> stored_matrix<float> {
      if (half)
        return dense(of.half.data(), 6, 4);
      return dense(of.wide.data(), 6, 4);
    };
    relu_pool<float>::forward({2, 6, 8}, pixels.data(), rows(pooled), choice.data(),
                              on);
    relu_pool<float>::backward({2, 6, 8}, rows(upper), choice.data(),
                               (half ? down_again : down).data(), on);
  }
  CHECK(pooled.agree());
  CHECK((down_again == down));
}

TEST_CASE("attention of bf16 is that of fp32, rounded", "[stored][attention][bf16]") {
  const attention_shape dims{2, GENERATE(5, 70, 200), 2, 32, GENERATE(false, true)};
  const auto rows = dims.sequences * dims.length;
  const twins qkv{rows * 3 * dims.width, 1}, dy{rows * dims.width, 2};
  twins y{rows * dims.width}, dqkv{rows * 3 * dims.width};
  stream on{GENERATE(1, 2), precision::bf16};
  const auto run = [&](auto member, const auto& output) {
    std::vector<float> space(static_cast<std::size_t>(
      attention<float>::scratch(dims, on.threads(), on.products()))),
      log_sum(static_cast<std::size_t>(dims.heads * rows));
    const auto matrix_of = [&](auto& of, std::int64_t columns) {
      return dense((of.*member).data(), rows, columns);
    };
    attention<float>::forward(dims, matrix_of(qkv, 3 * dims.width),
                              matrix_of(y, dims.width), log_sum.data(), space.data(),
                              on);
    // Both backwards read the values that the forward has rounded.
    attention<float>::backward(dims, matrix_of(qkv, 3 * dims.width), output(),
                               log_sum.data(), matrix_of(dy, dims.width),
                               matrix_of(dqkv, 3 * dims.width), space.data(), on);
    return log_sum;
  };
  const auto outputs = [&] {
    return dense<const bf16>(y.half.data(), rows, dims.width);
  };
  const auto halves = run(&twins::half, outputs);
  CHECK((run(&twins::wide, outputs) == halves));
  CHECK(y.agree());
  CHECK(dqkv.agree());
  CHECK(dqkv.wide.back() != 0);
}

} // namespace troupe::stored_matrix_test
