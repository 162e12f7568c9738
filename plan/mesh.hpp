// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

// The mesh of ranks as axes: the sizes that a user asks for, and the position of each
// rank along each axis.

namespace troupe {

/// An axis along which ranks divide work, in the order of the numbers of ranks: the
/// position along the last axis changes fastest.
enum class axis : std::uint8_t {
  data,   ///< Replicas of a whole pipeline, each with a share of every batch.
  expert, ///< Neighbouring data replicas that divide a layer's experts.
  pipe,   ///< Ranks of a pipeline.
  tensor, ///< Shards of every layer.
};

inline constexpr std::size_t axis_count = 4;

/// A size along each axis, at first 1.
class mesh_sizes {
public:
  int& operator[](axis along) { return sizes_[static_cast<std::size_t>(along)]; }
  int operator[](axis along) const { return sizes_[static_cast<std::size_t>(along)]; }

  bool operator==(const mesh_sizes&) const = default;

private:
  std::array<int, axis_count> sizes_{1, 1, 1, 1};
};

/// Ranks, and the position of each rank along each axis. Every rank belongs to one
/// group along each set of axes: the ranks with equal positions along all other axes.
class rank_mesh {
public:
  /// \pre all sizes are above 0, and the product of all sizes is an int
  explicit rank_mesh(const mesh_sizes& sizes) : sizes_(sizes) {
    // nop
  }

  int size(axis along) const { return sizes_[along]; }

  /// Number of ranks.
  int ranks() const;

  /// Position of a rank along an axis, from 0.
  int index(int rank, axis along) const;

  /// The rank at `to` along an axis that has the positions of `rank` along all other
  /// axes.
  int moved(int rank, axis along, int to) const;

  /// The group of a rank along several axes, in increasing order.
  std::vector<int> group(int rank, std::initializer_list<axis> along) const;

private:
  int stride(axis along) const; // between neighbours along an axis, in ranks

  mesh_sizes sizes_;
};

} // namespace troupe
