// SPDX-License-Identifier: BSD-3-Clause
// The gate of a mixture of experts: chooses the experts of each row, and the rows that
// each expert accepts.
#pragma once

#include "kernels/matrix.hpp"
#include "kernels/stream.hpp"

#include <cstdint>

namespace troupe {

/// The rule that routes rows to experts.
struct gate_rule {
  int experts; ///< Number of experts (n).
  int chosen;  ///< Number of experts of each row (k).
  std::int64_t
    capacity; ///< Most rows that an expert accepts; further rows are dropped.
};

/// The result of a gate for R rows, in an array of `values(R, n, k)` values. The caller
/// owns the array, which must outlive the table.
template <class Scalar>
struct gate_table {
  static std::int64_t values(std::int64_t rows, int experts, int chosen);

  gate_table(Scalar* array, std::int64_t rows, const gate_rule& rule);

  std::int64_t rows;
  gate_rule rule;
  Scalar* probabilities; ///< (R, n)
  Scalar* weights;       ///< (R, k): factors of the experts' outputs.
  std::int32_t* chosen;  ///< (R, k): the experts, the most probable first.
  /// (R, k): index of the row among all sent rows, which are sorted by expert; -1 if
  /// the expert dropped the row.
  std::int32_t* positions;
  std::int32_t* counts; ///< (n): number of rows sent to each expert.
  /// (n): number of rows whose first choice is the expert, dropped or not.
  std::int32_t* first;
};

/// Routes each row to the k experts that have the highest probabilities in the softmax
/// of the row's logits. For k = 1 the weight is the probability (Fedus et al., "Switch
/// Transformers", 2021). For k > 1 the weights are the probabilities of the chosen
/// experts, divided by the sum (Lepikhin et al., "GShard", 2020, algorithm 1, without
/// its random second choice). An expert accepts first choices before second choices,
/// and first choices (or second choices) in the order of rows. Ties go to the expert
/// with the lower index.
template <class Scalar>
struct top_k_gate {
  /// Fills the table. On a GPU, waits for the stream, because callers read the counts.
  /// \pre `probabilities` holds the logits
  /// \throws std::runtime_error if a kernel of a GPU failed
  static void forward(const gate_table<Scalar>& to, stream& stream);

  /// The load-balancing loss n * sum over experts of f_e P_e. Here f_e is the share of
  /// rows whose first choice is e, and P_e the mean probability of e (Switch, equation
  /// 4). The loss is 1 for an even load, n at worst. Computed on the caller's thread.
  /// \pre forward() has filled the table, for at least one row
  static double imbalance(const gate_table<Scalar>& table);

  /// Fills dlogits (R, n) from dweights (R, k), the gradients of the weights, plus
  /// `balance` times the gradient of imbalance(). Dropped choices must be 0 in
  /// dweights: dispatch::combine_gradient() writes such zeros.
  static void backward(const gate_table<Scalar>& table, const Scalar* dweights,
                       Scalar balance, Scalar* dlogits, stream& stream);
};

} // namespace troupe
