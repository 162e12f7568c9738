// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/optimizer.hpp"

#include <tl/expected.hpp>

#include <map>
#include <optional>
#include <string>

namespace troupe {

class option_list;

/// Options of the optimizer, as a user types them.
struct typed_optimizer {
  std::string name = "adamw";
  std::optional<double> rate;
  std::string rate_schedule = "constant";
  double momentum = 0;
  std::string betas = "0.9,0.999";
  double epsilon = 1e-8;
  std::optional<double> weight_decay;
  std::string decay = "all";
  std::string clip = "0";
};

void add_optimizer(option_list& to, typed_optimizer& place);

/// On error says what is wrong, and what is allowed.
tl::expected<optimizer_options, std::string> parse(const typed_optimizer& typed);

/// The optimizer of one run: that of all runs, with what its schedule says of lr,
/// momentum, eps, weight_decay, beta1, beta2 and clip in their place.
/// \param values of the schedule; those of the optimizer are taken out
tl::expected<optimizer_options, std::string>
with_own(optimizer_options of_all, std::map<std::string, std::string>& values);

} // namespace troupe
