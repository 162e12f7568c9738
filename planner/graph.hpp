// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Sets of operators, and ideals: sets that are closed towards their inputs. The stages
// of a pipeline are differences of growing ideals.

#include "planner/kinds/edge.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::planner {

/// A set of operators from 0 to a size that is fixed at construction.
class operator_set {
public:
  operator_set() = default;
  explicit operator_set(int size)
    : words_((static_cast<std::size_t>(size) + bits - 1) / bits) {
    // nop
  }

  bool has(int member) const { return (word(member) >> (member % bits) & 1) != 0; }
  void add(int member) { word(member) |= std::uint64_t{1} << (member % bits); }
  void remove(int member) { word(member) &= ~(std::uint64_t{1} << (member % bits)); }

  bool empty() const;
  int count() const;
  /// Members in increasing order.
  std::vector<int> members() const;

  bool is_subset_of(const operator_set& other) const;
  bool intersects(const operator_set& other) const;
  operator_set& operator|=(const operator_set& other);
  /// Members of this set that `other` lacks.
  operator_set without(const operator_set& other) const;

  std::size_t hash() const;
  bool operator==(const operator_set&) const = default;
  auto operator<=>(const operator_set&) const = default;

private:
  static constexpr int bits = 64;

  std::uint64_t& word(int member) {
    return words_[static_cast<std::size_t>(member / bits)];
  }
  const std::uint64_t& word(int member) const {
    return words_[static_cast<std::size_t>(member / bits)];
  }

  std::vector<std::uint64_t> words_;
};

/// All ideals of a graph, by number of members: the empty set is the first, and the
/// full set the last. Absent if there are more than `most`.
std::optional<std::vector<operator_set>>
ideals_of(int operators, const std::vector<edge>& edges, std::size_t most);

/// The operators that each operator leads to.
std::vector<operator_set> reachable(int operators, const std::vector<edge>& edges);

/// One sentence if parts, in order, are no pipeline: an operator that is missing, twice
/// or unknown, an empty part, or an edge that leads back. Empty for a pipeline.
std::string chain_error(int operators, const std::vector<edge>& edges,
                        const std::vector<std::vector<int>>& parts);

} // namespace troupe::planner
