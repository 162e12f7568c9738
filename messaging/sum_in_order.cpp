// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/sum_in_order.hpp"

#include <bit>
#include <stdexcept>
#include <string>

namespace troupe {

namespace {

using sum = std::vector<float>;

sum copy_of(const float* array, std::int64_t values) {
  return {array, array + values};
}

/// A term of a sum, as messages carry the term.
float coded(float value, const codec* coder) {
  return coder != nullptr ? coder->coded(value) : value;
}

void add(sum& to, const float* array, const codec* coder) {
  for (auto& value : to)
    value = coded(value, coder) + coded(*array++, coder);
}

/// ((x0 + x1) + x2) + ...
sum one_by_one(std::span<const float* const> arrays, std::int64_t values,
               const codec* coder) {
  auto result = copy_of(arrays[0], values);
  for (std::size_t i = 1; i < arrays.size(); ++i)
    add(result, arrays[i], coder);
  return result;
}

/// The sum of the first arrays plus the sum of the rest, each computed in the same way.
/// The first ones are the largest power of two below the number of arrays.
sum by_tree(std::span<const float* const> arrays, std::int64_t values,
            const codec* coder) {
  if (arrays.size() == 1)
    return copy_of(arrays[0], values);
  const auto half = std::bit_floor(arrays.size() - 1);
  auto result = by_tree(arrays.first(half), values, coder);
  add(result, by_tree(arrays.subspan(half), values, coder).data(), coder);
  return result;
}

/// The sum of chunk c begins with the rank after c, and continues once around the ring.
sum around_ring(std::span<const float* const> arrays, const chunks& where,
                const codec* coder) {
  sum result(static_cast<std::size_t>(where.values()));
  const auto ranks = arrays.size();
  for (std::size_t c = 0; c < ranks; ++c)
    for (auto i = where.begin(static_cast<int>(c));
         i < where.begin(static_cast<int>(c) + 1); ++i) {
      float value = arrays[(c + 1) % ranks][i];
      for (std::size_t k = 2; k <= ranks; ++k)
        value = coded(value, coder) + coded(arrays[(c + k) % ranks][i], coder);
      result[static_cast<std::size_t>(i)] = value;
    }
  return result;
}

/// The sum of the even arrays plus the sum of the odd ones; each computed in the same
/// way.
sum evens_and_odds(const std::vector<sum>& arrays, std::size_t first,
                   std::size_t stride, const codec* coder) {
  if (stride == arrays.size())
    return arrays[first];
  auto result = evens_and_odds(arrays, first, 2 * stride, coder);
  add(result, evens_and_odds(arrays, first + stride, 2 * stride, coder).data(), coder);
  return result;
}

/// First adds as many pairs as leave a power of two.
sum by_halving(std::span<const float* const> arrays, std::int64_t values,
               const codec* coder) {
  const auto pairs = arrays.size() - std::bit_floor(arrays.size());
  std::vector<sum> folded;
  for (std::size_t i = 0; i < arrays.size(); ++i)
    if (i < 2 * pairs && i % 2 == 1)
      add(folded.back(), arrays[i], coder);
    else
      folded.push_back(copy_of(arrays[i], values));
  return evens_and_odds(folded, 0, 1, coder);
}

} // namespace

std::vector<float> sum_in_order(std::string_view algorithm,
                                std::span<const float* const> arrays,
                                const chunks& where, const codec* coder) {
  if (algorithm == "naive")
    return one_by_one(arrays, where.values(), coder);
  if (algorithm == "tree")
    return by_tree(arrays, where.values(), coder);
  if (algorithm == "ring")
    return around_ring(arrays, where, coder);
  // the pairs of ranks are the same
  if (algorithm == "halving" || algorithm == "doubling")
    return by_halving(arrays, where.values(), coder);
  throw std::logic_error("no function sums in the order of " + std::string{algorithm});
}

} // namespace troupe
