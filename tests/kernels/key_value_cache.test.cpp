// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/key_value_cache.hpp"

#include "kernels/attention.hpp"
#include "tests/kernels/numbers.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe::key_value_cache_test {

namespace {

struct cache_sizes {
  std::int64_t positions, heads, width;
};

/// The attention of a sequence, computed some tokens at a time.
template <class Scalar>
std::vector<Scalar> token_by_token(const cache_sizes& of, std::vector<Scalar> qkv,
                                   const std::vector<std::int64_t>& counts,
                                   int threads) {
  const auto [T, H, C] = of;
  stream on{threads};
  const auto poison = std::numeric_limits<Scalar>::quiet_NaN();
  std::vector<Scalar> cache(
    static_cast<std::size_t>(key_value_cache<Scalar>::values(T, H, C)), poison);
  std::vector<Scalar> y(qkv.size() / 3, poison);
  std::int64_t past = 0;
  for (const auto count : counts) {
    const auto in = dense(qkv.data() + past * 3 * C, count, 3 * C);
    const next_tokens dims{T, H, C, past};
    key_value_cache<Scalar>::put(dims, in, cache.data(), on);
    key_value_cache<Scalar>::attend(dims, in, cache.data(),
                                    dense(y.data() + past * C, count, C), on);
    past += count;
  }
  return y;
}

/// Attention's formula in double, one query at a time.
std::vector<double> by_definition(const cache_sizes& of, const std::vector<double>& qkv,
                                  std::int64_t tokens) {
  const auto [T, H, C] = of;
  const auto size = C / H;
  std::vector<double> y(static_cast<std::size_t>(tokens * C));
  for (std::int64_t h = 0; h < H; ++h)
    for (std::int64_t t = 0; t < tokens; ++t) {
      const auto at = [&, h = h, C = C](std::int64_t token, int which) {
        return qkv.data() + token * 3 * C + which * C + h * size;
      };
      std::vector<double> weights;
      double sum = 0;
      for (std::int64_t s = 0; s <= t; ++s) {
        double score = 0;
        for (std::int64_t c = 0; c < size; ++c)
          score += at(t, 0)[c] * at(s, 1)[c];
        weights.push_back(std::exp(score / std::sqrt(static_cast<double>(size))));
        sum += weights.back();
      }
      for (std::int64_t s = 0; s <= t; ++s)
        for (std::int64_t c = 0; c < size; ++c)
          y[static_cast<std::size_t>(t * C + h * size + c)] +=
            weights[static_cast<std::size_t>(s)] / sum * at(s, 2)[c];
    }
  return y;
}

} // namespace

TEST_CASE("attention to kept keys and values is attention by its definition",
          "[attention]") {
  const auto of =
    GENERATE(cache_sizes{40, 3, 15}, cache_sizes{37, 1, 16}, cache_sizes{33, 4, 256});
  const std::vector<std::int64_t> counts{5, 1, 1, 17, 1, 3};
  const std::int64_t tokens = 28;
  const auto exact = random_values<double>(tokens * 3 * of.width, 1);
  const auto want = by_definition(of, exact, tokens);
  const auto twice = token_by_token<double>(of, exact, counts, 1);
  const std::vector<float> rounded(exact.begin(), exact.end());
  const auto once = token_by_token<float>(of, rounded, counts, 1);
  for (std::size_t i = 0; i < want.size(); ++i) {
    CHECK(std::abs(twice[i] - want[i]) < 1e-12);
    CHECK(std::abs(once[i] - want[i]) < 1e-5);
  }
}

TEST_CASE("bits of kept attention depend neither on threads nor on its pieces",
          "[attention]") {
  const cache_sizes of{40, 3, 48};
  const auto qkv = random_values<float>(40 * 3 * of.width, 1);
  const auto want = token_by_token<float>(of, qkv, {40}, 1);
  const std::vector<std::int64_t> singles(40, 1);
  CHECK(token_by_token<float>(of, qkv, singles, 1) == want);
  CHECK(token_by_token<float>(of, qkv, {7, 1, 32}, 3) == want);
}

} // namespace troupe::key_value_cache_test
