// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

// Programs of troupe that another program starts.

namespace troupe {

/// The folder of the running program, which has all programs.
std::filesystem::path program_folder();

/// Replaces this process by another program of troupe. Ends the process with exit code
/// 127 and a sentence on standard error if the program cannot be started.
/// \param words the program's bare name first, then the arguments
[[noreturn]] void become(const std::vector<std::string>& words);

/// A program that has ended, and the texts that the program wrote.
struct ended_program {
  int status; ///< As waitpid() reports.
  std::string out, err;

  /// True if the program ended by itself.
  bool exited() const;
  /// \pre exited()
  int exit_code() const;
  /// The number of the signal that ended the program.
  /// \pre not exited()
  int signal() const;
};

/// Runs a program of troupe until the program ends, in a process group of its own. The
/// program is killed if the calling thread ends before. Any thread may call.
/// \param words as for become()
/// \param interrupted passed on to the program once, as SIGINT, when the flag is set
/// \throws std::system_error if no process can be started
ended_program run_to_end(const std::vector<std::string>& words,
                         const std::atomic<bool>& interrupted);

} // namespace troupe
