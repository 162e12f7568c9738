// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/options.hpp"

#include <string>

namespace troupe {

/// One sentence about the first option that differs from its default and has no effect
/// with the other options; empty if there is none. The sentence names the feature that
/// the option belongs to. Options that a schedule sets for itself are checked too.
/// \param o the parsed values of `typed`
std::string without_effect(const typed_options& typed, const options& o,
                           const program_info& program);

} // namespace troupe
