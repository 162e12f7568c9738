// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <tl/expected.hpp>

#include <cstdint>
#include <string>

namespace troupe {

enum class optimizer_kind : std::uint8_t { sgd, adamw };

/// How the learning rate changes over the samples of a run: up to `rate` while the
/// first `warmup` samples come, then constant, or down a half cosine to floor * rate at
/// the end.
struct rate_schedule {
  bool cosine = false;
  std::int64_t warmup = 0; ///< samples
  double floor = 0;
  std::int64_t course = 0; ///< Samples until the end of it; 0: those of the run.

  /// The factor for an update that covers samples [first, last) of a run of `total`.
  double factor(std::int64_t first, std::int64_t last, std::int64_t total) const;

  /// "constant", "warmup=1000", "cosine", or "cosine,warmup=1000,floor=0.1".
  static tl::expected<rate_schedule, std::string> parse(const std::string& text);
};

/// Whose gradients the norm of clipping covers.
enum class clip_scope : std::uint8_t { network, stage };

/// PyTorch's SGD or AdamW (Loshchilov and Hutter, "Decoupled Weight Decay
/// Regularization", 2019), by PyTorch's names.
struct optimizer_options {
  optimizer_kind kind = optimizer_kind::adamw;
  double rate = 1e-3;      ///< Of learning; at least 0.
  rate_schedule schedule;  ///< What becomes of it.
  double momentum = 0;     ///< Of sgd: from 0 to below 1.
  double beta1 = 0.9;      ///< Of adamw: decay of the mean of gradients, below 1,
  double beta2 = 0.999;    ///< and of their squares.
  double epsilon = 1e-8;   ///< Of adamw: in the divisor, above 0.
  double weight_decay = 0; ///< At least 0.
  bool decay_only_matrices = false;       ///< Else every parameter, as PyTorch does.
  double clip = 0;                        ///< The largest norm of a gradient; 0: any.
  clip_scope scope = clip_scope::network; ///< Whose norm that is.
};

/// What is out of range, and what the range is, in words; empty if nothing is.
std::string refusal(const optimizer_options& options);

} // namespace troupe
