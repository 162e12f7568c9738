// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/options.hpp"

#include <string>

namespace troupe {

/// One sentence about a key of --cost that differs from its default and has no effect
/// in any run; empty if there is none. FB, I and W beside B are not checked, as their
/// effect depends on the actions of each schedule.
std::string cost_without_effect(const options& o);

} // namespace troupe
