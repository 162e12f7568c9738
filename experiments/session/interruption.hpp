// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>

namespace troupe {

/// The exit code of a program that its user ended.
inline constexpr int ended_by_user = 130;

/// Set once the user presses Ctrl-C, SIGTERM or SIGHUP comes, or a reader of what the
/// program prints has gone. The first call begins to listen; another signal kills if it
/// comes a second later, but for the last. A SIGHUP that nohup ignores stays ignored.
const std::atomic<bool>& interruption();

/// From now on neither the end of a reader, as head's, nor a limit on the size of files
/// kills the program: writing fails instead.
void outlive_failed_writes();

/// Whether a reader has gone while the program wrote to it.
bool reader_is_gone();

} // namespace troupe
