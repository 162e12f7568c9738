// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The options of optimizers: rates, decay and clipping.

#include <tl/expected.hpp>

#include <cstdint>
#include <map>
#include <string>

namespace troupe {

/// The learning rate over the samples of a training, counted from the first sample that
/// was ever trained on. The rate rises to `rate` during the first `warmup` samples.
/// Then the rate is constant, or falls along half a cosine to floor * rate at the end.
struct rate_schedule {
  bool cosine = false;     ///< True: the rate falls after the warmup.
  std::int64_t warmup = 0; ///< Samples in which the rate rises to its full value.
  double floor = 0; ///< For a cosine: fraction of the rate at the end, from 0 to 1.
  /// Sample at which the cosine ends, counted from the first sample that was ever
  /// trained on. 0: the last sample of the training.
  std::int64_t course = 0;

  /// The factor on the rate for an update that covers samples [first, last) of a
  /// training of `total` samples.
  double factor(std::int64_t first, std::int64_t last, std::int64_t total) const;

  /// Parses "constant", "warmup=1000", "cosine", or "cosine,warmup=1000,floor=0.1". On
  /// error one sentence.
  static tl::expected<rate_schedule, std::string> parse(const std::string& text);
};

/// The gradients that the norm of clipping covers: the network's or a stage's.
enum class clip_scope : std::uint8_t { network, stage };

/// An optimizer of the catalog (optimizer_catalog.hpp), with PyTorch's names of
/// options.
struct optimizer_options {
  std::string name = "adamw";
  /// Values of the optimizer's own parameters. A parameter without a value has the
  /// catalog's initial value.
  std::map<std::string, double> parameters = {};
  double rate = 1e-3;               ///< Learning rate; at least 0.
  rate_schedule schedule;           ///< Changes of the rate over the run.
  double momentum = 0;              ///< From 0 to below 1.
  double beta1 = 0.9;               ///< Decay of the mean of gradients, below 1.
  double beta2 = 0.999;             ///< Decay of the mean of squares, below 1.
  double epsilon = 1e-8;            ///< Added to the divisor, above 0.
  double weight_decay = 0;          ///< At least 0.
  bool decay_only_matrices = false; ///< False: every parameter decays, as in PyTorch.
  double clip = 0;                  ///< The largest norm of a gradient; 0: no limit.
  clip_scope scope = clip_scope::network; ///< The gradients that the norm covers.
};

/// One sentence about the first invalid option: an optimizer or parameter is unknown, a
/// value is out of range, or `scope` is the stage and `clip` is 0. Empty if all options
/// are valid.
std::string validation_error(const optimizer_options& options);

} // namespace troupe
