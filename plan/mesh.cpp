// SPDX-License-Identifier: BSD-3-Clause
#include "plan/mesh.hpp"

#include <algorithm>

namespace troupe {

int rank_mesh::ranks() const {
  return stride(axis::data) * size(axis::data);
}

int rank_mesh::stride(axis along) const {
  int result = 1;
  for (std::size_t inner = static_cast<std::size_t>(along) + 1; inner < axis_count;
       ++inner)
    result *= sizes_[static_cast<axis>(inner)];
  return result;
}

int rank_mesh::index(int rank, axis along) const {
  return rank / stride(along) % size(along);
}

int rank_mesh::moved(int rank, axis along, int to) const {
  return rank + (to - index(rank, along)) * stride(along);
}

std::vector<int> rank_mesh::group(int rank, std::initializer_list<axis> along) const {
  std::vector<int> result{rank};
  for (const auto one : along) {
    std::vector<int> wider;
    for (const int member : result)
      for (int to = 0; to < size(one); ++to)
        wider.push_back(moved(member, one, to));
    result = std::move(wider);
  }
  std::ranges::sort(result);
  return result;
}

} // namespace troupe
