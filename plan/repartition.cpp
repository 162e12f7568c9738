// SPDX-License-Identifier: BSD-3-Clause
#include "plan/repartition.hpp"

#include <cstddef>
#include <stdexcept>

namespace troupe {

double bytes_sent(collective_operation operation, double bytes, int devices) {
  const double n = devices;
  switch (operation) {
  case collective_operation::all_reduce:
    return 2 * (n - 1) * bytes / n;
  case collective_operation::all_gather:
  case collective_operation::reduce_scatter:
    return (n - 1) * bytes / n;
  case collective_operation::all_to_all:
    return (n - 1) * bytes / (n * n);
  default:
    throw std::invalid_argument("a layout changes only by collectives of all devices");
  }
}

double shard_bytes(double bytes, std::string_view indices, axis_indices split,
                   const std::vector<device_axis>& mesh, int besides) {
  for (std::size_t axis = 0; axis < mesh.size(); ++axis)
    if (static_cast<int>(axis) != besides
        && indices.find(split[axis]) != std::string_view::npos)
      bytes /= mesh[axis].devices;
  return bytes;
}

double repartition_seconds(double bytes, axis_indices held, axis_indices wanted,
                           const std::vector<device_axis>& mesh) {
  double seconds = 0;
  for (std::size_t axis = 0; axis < mesh.size(); ++axis) {
    if (held[axis] == unsplit || held[axis] == wanted[axis])
      continue;
    double rest = bytes;
    for (std::size_t other = 0; other < mesh.size(); ++other)
      if (other != axis && held[other] != unsplit)
        rest /= mesh[other].devices;
    const auto operation = wanted[axis] == unsplit ? collective_operation::all_gather
                                                   : collective_operation::all_to_all;
    seconds +=
      bytes_sent(operation, rest, mesh[axis].devices) / mesh[axis].bytes_per_second;
  }
  return seconds;
}

} // namespace troupe
