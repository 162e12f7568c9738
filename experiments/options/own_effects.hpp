// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/schedule_options.hpp"

#include <string>
#include <string_view>

namespace troupe {

// Options that a schedule sets for itself, as in "1f1b:momentum=0.9", and which of them
// have no effect.

// '%' stands for the option; see with_name().
inline constexpr std::string_view of_sgd =
  "applies only to sgd: say --optimizer sgd too, or leave % out";
inline constexpr std::string_view of_adamw =
  "applies only to adamw: say --optimizer adamw too, or leave % out";

/// The end of a sentence about an option without effect, with the option's name in
/// place of '%'.
std::string with_name(std::string_view text, std::string_view option);

/// True if the schedule has a value with the option's name, as momentum=0.9 for
/// "--momentum". For "--betas" the schedule must have beta1 and beta2. The value
/// `stage`, as in clip=stage, replaces no option.
/// \param option name with dashes: "--momentum"
bool replaces(const chosen_schedule& chosen, std::string_view option);

/// One sentence about a schedule's momentum, beta1, beta2 or eps that the optimizer of
/// the schedule's run ignores, unless the value is the default. Also about f, i or w of
/// zb-auto beside measured=on. Empty if there is no such value.
std::string without_effect(const chosen_schedule& chosen);

} // namespace troupe
