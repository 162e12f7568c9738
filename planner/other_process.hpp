// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace troupe::planner {

/// Calls a function in a process of its own, whose abort does not end this process.
/// What the function prints is dropped. The process ends with this process, and is
/// killed some time after `most_seconds`: after a quarter of them, at least a second.
/// \returns the function's bytes; absent if the process ended otherwise, or if there
/// was no memory for a process
std::optional<std::string> in_other_process(const std::function<std::string()>& compute,
                                            double most_seconds);

} // namespace troupe::planner
