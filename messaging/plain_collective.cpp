// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/plain_collective.hpp"

#include "messaging/sum_in_order.hpp"

namespace troupe {

namespace {

using arrays_view = std::span<const float* const>;

/// Appends chunk c of an array to the values.
void append(std::vector<float>& values, const float* array, const chunks& where,
            int c) {
  values.insert(values.end(), array + where.begin(c), array + where.begin(c + 1));
}

collective_outcome chunk_of(const float* array, const chunks& where, int c) {
  collective_outcome result{where.begin(c), {}};
  append(result.values, array, where, c);
  return result;
}

collective_outcome whole(const float* array, const chunks& where) {
  return {0, {array, array + where.values()}};
}

/// Chunk r of the r-th array, for each r.
collective_outcome gathered(arrays_view arrays, const chunks& where) {
  collective_outcome result;
  for (int r = 0; r < where.count(); ++r)
    append(result.values, arrays[static_cast<std::size_t>(r)], where, r);
  return result;
}

/// Chunk `rank` of each array.
collective_outcome exchanged(arrays_view arrays, const chunks& where, int rank) {
  collective_outcome result;
  for (const auto* array : arrays)
    append(result.values, array, where, rank);
  return result;
}

std::vector<float> total(const collective_order& order, arrays_view arrays,
                         const chunks& where, int root) {
  std::vector<const float*> from_root;
  for (std::size_t i = 0; i < arrays.size(); ++i)
    from_root.push_back(arrays[(i + static_cast<std::size_t>(root)) % arrays.size()]);
  return sum_in_order(order.name, from_root, where);
}

} // namespace

std::vector<collective_outcome> plain_collective(const collective_order& order,
                                                 arrays_view arrays,
                                                 const chunks& where, int root) {
  using enum collective_operation;
  const int ranks = static_cast<int>(arrays.size());
  std::vector<collective_outcome> result(arrays.size());
  std::vector<float> sum;
  if (order.operation == reduce || order.operation == all_reduce
      || order.operation == reduce_scatter)
    sum = total(order, arrays, where, root);
  const auto* const source = arrays[static_cast<std::size_t>(root)];
  for (int r = 0; r < ranks; ++r) {
    auto& outcome = result[static_cast<std::size_t>(r)];
    switch (order.operation) {
    case send:
      if (r == (root + 1) % ranks)
        outcome = whole(source, where);
      break;
    case scatter:
      outcome = chunk_of(source, where, r);
      break;
    case gather:
      if (r == root)
        outcome = gathered(arrays, where);
      break;
    case broadcast:
      outcome = whole(source, where);
      break;
    case reduce:
      if (r == root)
        outcome = {0, sum};
      break;
    case all_reduce:
      outcome = {0, sum};
      break;
    case all_gather:
      outcome = gathered(arrays, where);
      break;
    case reduce_scatter:
      outcome = chunk_of(sum.data(), where, r);
      break;
    case all_to_all:
      outcome = exchanged(arrays, where, r);
      break;
    }
  }
  return result;
}

} // namespace troupe
