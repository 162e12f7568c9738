// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>

namespace troupe {

/// The exit code of a program that the user ended.
inline constexpr int ended_by_user = 130;

/// Set when the user presses Ctrl-C (SIGINT), or when another signal asks the program
/// to end. These signals are SIGTERM, SIGHUP, and announcements of batch systems that a
/// job ends (SIGUSR1, SIGUSR2, SIGXCPU). After outlive_failed_writes(), also set when a
/// reader of the program's output has gone. The first call installs the handlers. A
/// SIGINT, SIGTERM or SIGHUP kills the program if the first of these signals came at
/// least a second earlier; announcements never kill. SIGHUP and announcements that were
/// ignored at the start, as under nohup, stay ignored. Any thread may read the flag.
const std::atomic<bool>& interruption();

/// Set when a batch system announces the end of the job. After the first call
/// announcements set only this flag, and no longer the flag of interruption().
const std::atomic<bool>& announced_end();

/// Leaves all signals to the program around this library, such as Python:
/// interruption() installs no handlers, and only interrupt() changes its flag.
/// \pre interruption() was never called
void leave_signals();

/// Sets or clears the flag of interruption().
void interrupt(bool is_set);

/// Makes failed writes return errors from now on, instead of signals that kill the
/// program. A write fails if a reader such as `head` has gone, or if a file is too
/// large. A reader that has gone also sets interruption(). Valid for the whole process.
void outlive_failed_writes();

/// True if a write has raised SIGPIPE since outlive_failed_writes(): the reader of an
/// output had gone.
bool reader_is_gone();

} // namespace troupe
