// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>

namespace troupe {

/// The exit code of a program that its user ended.
inline constexpr int ended_by_user = 130;

/// Set once the user presses Ctrl-C (SIGINT), a signal asks the program to end, or a
/// reader of its output has gone. Signals: SIGTERM, SIGHUP, and announcements of batch
/// systems that a job ends (SIGUSR1, SIGUSR2, SIGXCPU). The first call installs the
/// handlers. A SIGINT, SIGTERM or SIGHUP that follows another one after a second kills;
/// announcements never kill. SIGHUP and announcements that were ignored at the start,
/// as under nohup, stay ignored.
const std::atomic<bool>& interruption();

/// Set once a batch system announces the end of the job. After the first call these
/// signals set this alone, and interrupt nothing.
const std::atomic<bool>& announced_end();

/// From now on neither the end of a reader, as head's, nor a limit on the size of files
/// kills the program: writing fails instead.
void outlive_failed_writes();

/// Whether a reader has gone while the program wrote to it.
bool reader_is_gone();

} // namespace troupe
