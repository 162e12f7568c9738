// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/options.hpp"

#include <string>

namespace troupe {

/// One sentence about an option that differs from its default and has no effect in any
/// run; empty if there is none. The options of the table in effects.cpp are checked. So
/// are the parameters of each schedule (own_effects.hpp), for the schedule's own run,
/// and the keys of --cost (cost_effects.hpp). The sentence has the reason, and usually
/// the option to change.
/// \param o the parsed values of `typed`
/// \param program has the defaults, `program.defaults`
std::string without_effect(const typed_options& typed, const options& o,
                           const program_info& program);

} // namespace troupe
