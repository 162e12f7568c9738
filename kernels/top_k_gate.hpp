// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/matrix.hpp"
#include "kernels/stream.hpp"

#include <cstdint>

namespace troupe {

/// How rows are routed to experts.
struct gate_rule {
  int experts;           ///< n
  int chosen;            ///< k, experts a row
  std::int64_t capacity; ///< Rows that an expert takes; more are dropped.
};

/// What a gate says of R rows, in an array of `values(R, n, k)` of the caller's.
template <class Scalar>
struct gate_table {
  static std::int64_t values(std::int64_t rows, int experts, int chosen);

  gate_table(Scalar* array, std::int64_t rows, const gate_rule& rule);

  std::int64_t rows;
  gate_rule rule;
  Scalar* probabilities; ///< (R, n)
  Scalar* weights;       ///< (R, k): what an expert's output is multiplied with.
  std::int32_t* chosen;  ///< (R, k): the experts, the most probable first.
  /// (R, k): where the row stands among those on their way, which are sorted by expert;
  /// -1 if it was dropped.
  std::int32_t* places;
  std::int32_t* counts; ///< (n): rows on their way to each expert.
  std::int32_t* first;  ///< (n): rows whose first choice it is, dropped or not.
};

/// Routes each row to the k experts that a softmax over its logits finds most probable.
/// k = 1: the weight is the probability (Fedus et al., "Switch Transformers", 2021).
/// k > 1: the probabilities of the chosen, divided by their sum (Lepikhin et al.,
/// "GShard", 2020, algorithm 1, without its random second choice). An expert takes
/// first choices before second ones, and among them rows in their order; ties go to the
/// expert that stands first.
template <class Scalar>
struct top_k_gate {
  /// Fills the table. \pre its probabilities hold the logits
  static void forward(const gate_table<Scalar>& to, stream& on);

  /// The load-balancing loss n * sum over experts of f_e P_e, where f_e is the share of
  /// rows whose first choice e is, and P_e its mean probability (Switch, equation 4): 1
  /// where all is even, n at worst.
  static double imbalance(const gate_table<Scalar>& of);

  /// dlogits (R, n) of weights whose gradients are dweights (R, k), plus `balance`
  /// times the gradient of imbalance(). What was dropped has no gradient.
  static void backward(const gate_table<Scalar>& of, const Scalar* dweights,
                       Scalar balance, Scalar* dlogits, stream& on);
};

} // namespace troupe
