// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/options.hpp"

#include <string>

namespace troupe {

/// The first option of a program that differs from its default and changes nothing
/// beside the others, in a sentence that says what it belongs to; also of options that
/// a schedule has of its own. Empty if there is none.
/// \param o the values of `typed`
std::string without_effect(const typed_options& typed, const options& o,
                           const program_about& about);

} // namespace troupe
