// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace troupe::python {

/// The session, or the check of a layer, that a process performs. Ctrl-C ends all runs
/// of a process, so that there is one at a time. Python's lock is not needed.
class only_session {
public:
  /// \throws std::runtime_error if the process performs another, or if Python ends
  only_session();
  ~only_session();
  only_session(const only_session&) = delete;
  only_session& operator=(const only_session&) = delete;

  /// Ends the session of another thread as by Ctrl-C, and waits for its end, at most
  /// for half a minute. No session begins then. Returns whether threads are left that
  /// never end; an exit of the process then destroys nothing that they use.
  static bool end();

  /// Does not return if another thread has called end(): an exception that a daemon
  /// thread prints while Python ends would abort the process. Needs Python's lock, and
  /// no session of this thread.
  static void stay_if_python_ends();

  /// Forgets the session of the parent, whose threads a forked process does not have.
  static void forget();

  /// True from the call of end() on. Passes then end with an exception.
  static bool python_ends();
};

/// Records that Ctrl-C ends the session, or ended a pass or a sample.
void note_interrupt();

/// Whether note_interrupt() was called since the session began.
bool was_interrupted();

} // namespace troupe::python
