// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe {

/// Returns an id of this machine since its last boot: processes with equal ids share a
/// steady clock. Empty if the kernel gives no id.
std::string this_machine();

} // namespace troupe
