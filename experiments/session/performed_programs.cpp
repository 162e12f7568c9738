// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/performed_programs.hpp"

#include "experiments/session/program.hpp"

#include <algorithm>
#include <array>
#include <iostream>

namespace troupe {

const performed_program* performed_program_named(std::string_view name) {
  static const std::array all{evaluate_program(), memory_program(), verify_program()};
  const auto found = std::ranges::find_if(
    all, [&](const performed_program& program) { return program.info.name == name; });
  return found == all.end() ? nullptr : &*found;
}

int run_performed(const performed_program& program, int argc, const char* const* argv) {
  return run_program(program.info, argc, argv, [&](const options& o) {
    const auto complain = [&](const std::string& sentence) {
      std::cerr << program.info.name << ": " << sentence << std::endl;
    };
    const auto end = program.perform(o, {.error = complain, .note = complain});
    if (end)
      return end->exit_code;
    complain(end.error());
    return 2;
  });
}

} // namespace troupe
