// SPDX-License-Identifier: BSD-3-Clause
// A GPU's embeddings compared with the CPU's: sums in the same order, so the same bits.

#include "kernels/embedding.hpp"

#include "kernels/cuda/kernels.hpp"
#include "tests/kernels/cuda/judge.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

namespace troupe::embedding_test {

using gpu::stored_array;

namespace {

struct tokens_case {
  cuda::embedding::shape dims;
  /// Tokens are below this; tokens that are not dims' words are of other shards.
  int vocabulary;
  std::int64_t gap;
};

tokens_case some_case() {
  return GENERATE(
    tokens_case{{.sequences = 1, .length = 1, .width = 1, .words = 1}, 1, 0},
    tokens_case{{.sequences = 3, .length = 7, .width = 33, .words = 5}, 5, 3},
    // Repeated tokens, over more rows than a warp reads at once.
    tokens_case{{.sequences = 5, .length = 33, .width = 8, .words = 3}, 3, 8},
    tokens_case{{.sequences = 2, .length = 150, .width = 5, .words = 200}, 200, 0},
    tokens_case{
      {.sequences = 4, .length = 5, .width = 264, .words = 4, .first_word = 6}, 13, 0},
    tokens_case{{.sequences = 3,
                 .length = 9,
                 .width = 40,
                 .words = 7,
                 .first_word = 3,
                 .by_position = true},
                11,
                8});
}

} // namespace

TEST_CASE("a GPU embeds tokens as the CPU does", "[cuda]") {
  GPU_OR_SKIP();
  const auto [dims, vocabulary, gap] = some_case();
  const auto stored = GENERATE(precision::fp32, precision::bf16);
  const bool has_places = GENERATE(true, false);
  const auto rows = dims.sequences * dims.length, C = dims.width;
  CAPTURE(rows, C, stored == precision::bf16, has_places);
  const auto tokens = random_labels(rows, vocabulary, 1);
  const auto words = gpu::rounded(random_values<float>(dims.words * C, 2), stored),
             places = gpu::rounded(random_values<float>(dims.length * C, 3), stored);

  const auto made = gpu::in_every_order([&, dims = dims, gap = gap] {
    const gpu::array<std::int32_t> gtokens{"tokens", tokens};
    const stored_array gwords{"words", words, {dims.words, C, gap}, stored},
      gplaces{"places", places, {dims.length, C, gap}, stored},
      y{"y", {rows, C, has_places ? gap : gap + 3}, stored};
    cuda::embedding::forward(dims, gtokens.data(), gwords.in(),
                             has_places ? gplaces.in() : cuda::input{}, y.out(),
                             nullptr);
    gpu::wait();
    return gpu::results{y.values()};
  });

  std::vector<float> y(static_cast<std::size_t>(rows * C));
  stream on;
  embedding<float>::forward(
    dims, tokens.data(), dense(words.data(), dims.words, C),
    has_places ? stored_matrix<const float>{dense(places.data(), dims.length, C)}
               : stored_matrix<const float>{},
    dense(y.data(), rows, C), on);
  CHECK(made[0] == gpu::rounded(y, stored));
}

TEST_CASE("a GPU sums an embedding's gradients in the order of rows", "[cuda]") {
  GPU_OR_SKIP();
  const auto [dims, vocabulary, gap] = some_case();
  const auto stored = GENERATE(precision::fp32, precision::bf16);
  const bool adds = GENERATE(false, true);
  const auto rows = dims.sequences * dims.length, C = dims.width;
  CAPTURE(rows, C, stored == precision::bf16, adds);
  const float beta = adds ? 1 : 0;
  const auto tokens = random_labels(rows, vocabulary, 1);
  const auto dy = gpu::rounded(random_values<float>(rows * C, 2), stored);
  auto dwords = random_values<float>(dims.words * C, 3),
       dplaces = random_values<float>(dims.length * C, 4);

  const auto made = gpu::in_every_order([&, dims = dims, gap = gap] {
    const gpu::array<std::int32_t> gtokens{"tokens", tokens};
    const stored_array gdy{"dy", dy, {rows, C, gap}, stored};
    const auto gdwords = gpu::sum_of("dwords", dwords, adds),
               gdplaces = gpu::sum_of("dplaces", dplaces, adds),
               without_places = gpu::sum_of("dwords", dwords, adds);
    cuda::embedding::gradient(dims, gtokens.data(), gdy.in(), beta, gdwords->data(),
                              gdplaces->data(), nullptr);
    cuda::embedding::gradient(dims, gtokens.data(), gdy.in(), beta,
                              without_places->data(), nullptr, nullptr);
    gpu::wait();
    return gpu::results{gdwords->values(), gdplaces->values(),
                        without_places->values()};
  });

  stream on;
  embedding<float>::gradient(dims, tokens.data(), dense(dy.data(), rows, C), beta,
                             dwords.data(), dplaces.data(), on);
  CHECK(made[0] == dwords);
  CHECK(made[1] == dplaces);
  CHECK(made[2] == dwords);
}

TEST_CASE("a GPU takes tokens to where it reads them", "[cuda]") {
  GPU_OR_SKIP();
  const auto n = GENERATE(std::int64_t{1}, std::int64_t{33}, std::int64_t{700});
  const auto tokens = random_labels(n, 1000, 1);
  const gpu::array<std::int32_t> from{"from", tokens}, to{"to", n};
  cuda::embedding::take(from.data(), n, to.data(), nullptr);
  gpu::wait();
  CHECK(to.values() == tokens);
}

} // namespace troupe::embedding_test
