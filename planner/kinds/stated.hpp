// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Strategies of matrix products on a mesh of devices, with costs that follow from
// sizes, speed and bandwidth alone.

#include "plan/repartition.hpp"
#include "planner/case_value.hpp"
#include "planner/kinds/intra.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::planner {

/// An einsum, or an elementwise operator.
struct stated_operator {
  std::string name;
  std::vector<std::string> operands; ///< Indices of each; elementwise: of the output.
  std::string output;                ///< Indices.
  bool is_elementwise = false;
  std::optional<int> weight; ///< The operand that is a parameter.
  double repeats = 1;        ///< Products of one input at once, as query, key, value.
  double operations = 0;     ///< Of an elementwise operator.
  std::string allowed;       ///< Indices that a mesh axis may split.
};

/// The output of `from` is an operand of `to`.
struct stated_edge {
  int from = 0;
  int to = 0;
  std::map<char, char> renamed; ///< Index of the output, and its name in the reader.
};

struct stated_problem {
  std::vector<device_axis> mesh;
  double operations_per_second = 1; ///< Of a device.
  std::map<char, double> sizes;     ///< Of each index.
  double bytes_an_element = 2;      ///< Of activations and gradients.
  double bytes_a_parameter = 16;    ///< With gradient and optimizer state.
  std::vector<stated_operator> operators;
  std::vector<stated_edge> edges;
  std::optional<double> memory; ///< Bytes of a device.
};

/// Reads {mesh, bandwidth, flops, sizes, bytes_an_element, bytes_a_parameter,
/// operators: [{name, einsum, weight, repeats, flops, allowed}], edges: [[from, to,
/// letters in pairs]]}. Throws case_error.
stated_problem read_stated(const case_value& from);

/// All strategies: each mesh axis splits one allowed index, or repeats the work. An
/// index whose size the axes do not divide is left out. Names are as "m|-".
///
///   node    seconds of forward and backward products, 6 operations a multiplication,
///           an all_reduce of the output for a split index that the output lacks, and
///           of an operand's gradient for a split index that the operand lacks
///   edge    seconds to change the layout forward, and of the gradient back
///   memory  bytes of the output's shard, and of the parameters' shard
///
/// Zheng et al., "Alpa", OSDI 2022, section 4.
intra_problem strategies_of(const stated_problem& problem);

} // namespace troupe::planner
