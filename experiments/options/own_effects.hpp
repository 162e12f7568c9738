// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/schedule_options.hpp"

#include <string>
#include <string_view>

namespace troupe {

// Options of the optimizer that a schedule says for itself, as "1f1b:momentum=0.9".

inline constexpr std::string_view of_sgd =
  "is of sgd: say --optimizer sgd too, or leave it out";
inline constexpr std::string_view of_adamw =
  "is of adamw: say --optimizer adamw too, or leave it out";

/// Whether a schedule says this in place of the option for all runs.
bool replaces(const chosen_schedule& one, std::string_view option);

/// What a schedule says for itself and changes nothing, in a sentence that says what it
/// belongs to; empty if there is nothing such.
std::string without_effect(const chosen_schedule& one);

} // namespace troupe
