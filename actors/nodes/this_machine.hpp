// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe {

/// Names the machine, since it was started: processes that find the same share a steady
/// clock. Empty where the kernel does not say.
std::string this_machine();

} // namespace troupe
