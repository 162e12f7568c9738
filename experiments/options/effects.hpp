// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/options.hpp"

#include <string>

namespace troupe {

/// One sentence about an option that differs from its default and has no effect in any
/// run; empty if there is none. All rows of the catalog are checked. So are the
/// parameters of each schedule, for the schedule's own run, and the keys of --cost. The
/// sentence has the reason, and usually the option to change.
/// \param o the parsed values of `typed`
/// \param program has the defaults, `program.defaults`
std::string without_effect(const typed_options& typed, const options& o,
                           const program_info& program);

/// One sentence about a key of --cost that differs from its default and has no effect
/// in any run; empty if there is none. FB, I and W beside B are not checked, as their
/// effect depends on the actions of each schedule.
std::string cost_without_effect(const options& o);

} // namespace troupe
