// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <vector>

// The layouts of all tensors of a network, from annotations of a few tensors, and the
// collectives that the layouts need.

namespace troupe {

/// The mesh axis of each dimension of a tensor; absent: not split.
using tensor_layout = std::vector<std::optional<std::string>>;

/// Layouts by name of tensor.
using tensor_layouts = std::map<std::string, tensor_layout>;

/// An operator as an einsum: letters name the indices of tensors' dimensions.
struct einsum_operator {
  std::vector<std::string> inputs;  ///< Names of tensors.
  std::vector<std::string> letters; ///< Indices of each input.
  std::string output;
  std::string output_letters;
  bool reshard = false; ///< No layout passes through this operator.

  /// True if the one input has the output's indices in the output's order.
  bool is_elementwise() const {
    return letters.size() == 1 && letters[0] == output_letters;
  }
};

/// A collective that an operator needs: "all-gather", operator 3, axis "x", tensor "a".
struct needed_collective {
  std::string name;
  int operation = 0; ///< Number of the operator.
  std::string axis;
  std::string tensor;

  auto operator<=>(const needed_collective&) const = default;
};

/// Spreads annotations until no layout changes: first through elementwise operators,
/// then through all. For each index, the first axis among inputs and output goes to the
/// output, then from the output to the inputs. An index that the output lacks passes
/// between inputs. A dimension takes an axis if the dimension has none and no other
/// dimension of the tensor has that axis. Annotated tensors never change.
/// Xu et al., "GSPMD: General and Scalable Parallelization for ML Computation Graphs",
/// 2021, section 3.5.
/// \pre a tensor has the same rank wherever its name stands, and in `annotated`
tensor_layouts propagated(const std::vector<einsum_operator>& operators,
                          const tensor_layouts& annotated);

/// The collectives of all operators, where each operator computes in the layout of its
/// output. An input in another layout needs an all-gather, or an all-to-all if another
/// of the input's dimensions needs the axis. A sum over an index with an axis needs a
/// reduce-scatter if the output has that axis, else an all-reduce.
/// Xu et al., 2021, section 4.
/// \param layouts of all tensors, as `propagated` returns
std::vector<needed_collective>
needed_collectives(const std::vector<einsum_operator>& operators,
                   const tensor_layouts& layouts);

} // namespace troupe
