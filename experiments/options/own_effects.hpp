// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/schedule_options.hpp"

#include <string>
#include <string_view>

namespace troupe {

// Options of the optimizer that a schedule sets for itself, as in "1f1b:momentum=0.9".

inline constexpr std::string_view of_sgd =
  "is of sgd: say --optimizer sgd too, or leave it out";
inline constexpr std::string_view of_adamw =
  "is of adamw: say --optimizer adamw too, or leave it out";

/// True if a schedule's own value replaces the option of all runs.
bool replaces(const chosen_schedule& chosen, std::string_view option);

/// One sentence about a schedule's value that has no effect, with the optimizer that
/// the value belongs to; empty if there is none.
std::string without_effect(const chosen_schedule& chosen);

} // namespace troupe
