// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/optimizers/value_update.hpp"
#include "models/optimizer_options.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// The catalog of optimizers: the options and state of each, and how each makes an
// update.

namespace troupe {

/// A number that a user may set for one optimizer, as in nadam:momentum_decay=0.
struct optimizer_parameter {
  std::string_view name;
  double initial; ///< The value if the user sets none; from `least` to `most`.
  double least;
  double most;
  std::string_view meaning;
};

/// Numbers of one update.
struct update_step {
  double rate;
  double weight_decay;
  std::int64_t number; ///< Number of the update, from 1.
};

/// An optimizer that a user selects by name.
struct optimizer_rule {
  std::string_view name;
  std::string_view summary;
  double usual_rate;  ///< Learning rate if the user sets none.
  double usual_decay; ///< Weight decay if the user sets none.
  // Options of several optimizers that this optimizer reads.
  bool reads_momentum = false; ///< optimizer_options::momentum
  bool reads_betas = false;    ///< optimizer_options::beta1 and beta2
  bool reads_epsilon = false;  ///< optimizer_options::epsilon
  std::vector<optimizer_parameter> parameters = {};
  /// Names of the state arrays, of which each has one value for each parameter value. A
  /// state array begins with zeros.
  std::vector<std::string_view> (*state)(const optimizer_options&);
  /// The update of values with these options.
  value_update (*update)(const optimizer_options&, const update_step&);
};

/// All optimizers; valid until the end of the program.
std::span<const optimizer_rule> optimizer_catalog();

/// Returns the optimizer called `name`, or null.
const optimizer_rule* find_optimizer(std::string_view name);

/// One sentence if the catalog has no optimizer of this name, or the optimizer has no
/// such parameter, or a parameter is out of range; else an empty text.
std::string selection_error(const optimizer_options& options);

/// The optimizer of valid options.
/// \pre selection_error(options) is empty
const optimizer_rule& rule_of(const optimizer_options& options);

/// Names of the state arrays of an optimizer with these options.
/// \pre selection_error(options) is empty
std::vector<std::string> state_names(const optimizer_options& options);

/// The names in the catalog: {"adamw", "nadam", "sgd"}.
std::vector<std::string> optimizer_names();

/// Parses "nadam" or "nadam:momentum_decay=0" into options with the optimizer's usual
/// rate and decay. On error one sentence with the allowed names or values.
tl::expected<optimizer_options, std::string> parse_optimizer(const std::string& text);

/// The text that parse_optimizer() reads; parameters with their initial values are left
/// out.
std::string text_of(const optimizer_options& options);

/// The text that rate_schedule::parse() reads.
std::string text_of(const rate_schedule& course);

} // namespace troupe
