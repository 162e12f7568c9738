// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/program.hpp"

#include "actors/run/local_run.hpp"
#include "experiments/options/command_line.hpp"
#include "experiments/session/interruption.hpp"
#include "experiments/session/measured_options.hpp"
#include "experiments/session/out_of_memory.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <new>
#include <system_error>

namespace troupe {

namespace {

/// Opens each standard stream that was closed at the program's start, so that no other
/// file gets its number. Reading from such a stream, or writing to it, fails.
void open_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0 && errno == EBADF)
      (void)open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

bool took_all(std::ostream& stream, std::FILE* file) {
  stream.flush();
  return std::fflush(file) == 0 && std::ferror(file) == 0 && stream.good();
}

int exit_code_of(const std::string& name, const std::function<int()>& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    std::cerr << name << ": out of memory; choose smaller sizes\n";
  } catch (const std::system_error& error) {
    const bool no_thread = error.code() == std::errc::resource_unavailable_try_again;
    std::cerr << name << ": "
              << (no_thread ? "cannot start a thread: the system allows no more"
                            : error.what())
              << '\n';
  } catch (const std::exception& error) {
    std::cerr << name << ": " << error.what() << '\n';
  }
  return 1;
}

/// Ends the program now if a run has left threads that never end, as an exit would
/// destroy objects that these threads use. Returns the exit code otherwise.
int leave(int exit_code) {
  if (!is_at_work())
    return exit_code;
  std::cout.flush();
  std::cerr.flush();
  std::fflush(nullptr);
  std::_Exit(std::max(exit_code, 1));
}

} // namespace

int run_program(const program_info& program, int argc, const char* const* argv,
                const std::function<int(options)>& body) {
  return run_guarded(program.name, [&] {
    auto o = read_command_line(program, argc, argv);
    if (!o)
      return o.error();
    if (const auto error = measure_options(*o); !error.empty()) {
      std::cerr << program.name << ": " << error << '\n';
      return 2;
    }
    return body(std::move(*o));
  });
}

int run_guarded(const std::string& name, const std::function<int()>& body) {
  open_standard_streams();
  outlive_failed_writes();
  end_when_out_of_memory(name);
  const int exit_code = exit_code_of(name, body);
  if (took_all(std::cout, stdout))
    return leave(exit_code);
  if (reader_is_gone())
    return leave(std::max(exit_code, ended_by_user));
  std::cerr << name << ": cannot write standard output\n";
  return leave(std::max(exit_code, 1));
}

} // namespace troupe
