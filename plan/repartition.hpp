// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/collective_order.hpp"

#include <string_view>
#include <vector>

// The time to move a tensor from one layout on a mesh of devices to another layout.

namespace troupe {

/// An axis of a mesh of devices.
struct device_axis {
  int devices = 1;
  double bytes_per_second = 1; ///< Of one device along this axis.
};

/// Bytes that one of `devices` devices sends in a bandwidth-optimal collective of a
/// tensor of `bytes` bytes in all. Thakur, Rabenseifner, Gropp, "Optimization of
/// Collective Communication Operations in MPICH", 2005.
/// \param operation all_reduce, all_gather, reduce_scatter or all_to_all
/// \throws std::invalid_argument for another operation
double bytes_sent(collective_operation operation, double bytes, int devices);

/// The letter of a mesh axis that splits no index of a tensor.
inline constexpr char unsplit = '-';

/// The tensor's layout as the index that each mesh axis splits: "m-" splits index m
/// along axis 0 and repeats the tensor along axis 1.
using axis_indices = std::string_view;

/// Bytes of a device's shard of a tensor whose indices are `indices`.
/// \param split one letter for each axis; letters that the tensor lacks split nothing
/// \param besides axis that is taken as unsplit; -1: none
double shard_bytes(double bytes, std::string_view indices, axis_indices split,
                   const std::vector<device_axis>& mesh, int besides = -1);

/// Seconds to change a tensor's layout in one direction, axis by axis. From `unsplit`
/// to an index each device drops values; from an index to `unsplit` is an all_gather;
/// from an index to another is an all_to_all. Zheng et al., "Alpa", OSDI 2022,
/// section 4.1. \param bytes size of the whole tensor \param held,wanted one letter for
/// each axis, of indices that the tensor has
double repartition_seconds(double bytes, axis_indices held, axis_indices wanted,
                           const std::vector<device_axis>& mesh);

} // namespace troupe
