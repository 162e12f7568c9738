// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe {

/// The text of the page of a study, which needs no other file.
/// \param json an object with the keys `troupe`, `command`, `program`, `clock`,
/// `seeds`, `varied`, `reference`, `measures`, `runs` and `summary` (docs/watching.md)
std::string study_page(const std::string& json);

} // namespace troupe
