// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/programs.hpp"

#include <algorithm>

namespace troupe {

const std::vector<program_info>& session_programs() {
  static const std::vector<program_info> all{
    {.name = "train",
     .description = "Training of any model on any data under one schedule.",
     .resumes = true,
     .distributes = true,
     .defaults = {.schedules = {.names = {"1f1b"}}}},
    {.name = "compare",
     .description = "Comparison of schedules, under which the same model learns the "
                    "same data. Prints a table of speed, memory, staleness and loss.",
     .distributes = true,
     .defaults = {.output = {.new_report = "runs/compare"}}},
    {.name = "simulate",
     .description =
       "Simulation of schedules in virtual time, without arithmetic. Asynchronous "
       "schedules run the microbatches of all steps without a flush between steps.",
     .trains = false,
     .draws = true,
     .defaults = {.schedules = {.steps = 1}, .cost = "F=1,B=2"}}};
  return all;
}

const program_info& session_program(std::string_view name) {
  return *std::ranges::find(session_programs(), name, &program_info::name);
}

} // namespace troupe
