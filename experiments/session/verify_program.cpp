// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/report/files.hpp"
#include "experiments/session/interruption.hpp"
#include "experiments/session/performed_programs.hpp"
#include "experiments/session/verification.hpp"
#include "experiments/session/verified_catalog.hpp"

#include <algorithm>
#include <iostream>

namespace troupe {

namespace {

tl::expected<program_end, std::string>
perform_proofs(const options& o, const program_listener& listener) {
  output_files files{o};
  if (auto error = files.prepare(); !error.empty())
    return tl::unexpected{error};
  std::vector<verified_run> runs;
  std::size_t left_out = 0;
  for (const auto& variant :
       o.output.whole_catalog ? verified_catalog(o) : std::vector{o}) {
    if (o.output.whole_catalog && !always_holds(variant)) {
      left_out += variant.schedules.chosen.size();
      continue;
    }
    if (auto error = verify(variant, listener, runs); !error.empty())
      return tl::unexpected{error};
    if (interruption())
      break;
  }
  const auto failures = std::ranges::count_if(runs, [](const verified_run& run) {
    return run.proved.outcome != ending::interrupted && !run.proved.holds();
  });
  program_end end{.exit_code = interruption() ? ended_by_user
                               : failures > 0 ? 1
                                              : 0,
                  .results = verified_json(o, runs),
                  .table = std::to_string(runs.size()) + " runs, "
                           + std::to_string(failures) + " that fail\n"};
  if (!o.output.quiet && !interruption())
    (o.output.results_on_stdout() ? std::cerr : std::cout) << end.table;
  if (left_out > 0 && !interruption())
    listener.note(
      std::to_string(left_out)
      + " runs of tensor shards left out: tensor shards sum in another order, and "
        "in bf16 each later layer's rounding enlarges the difference, "
        "sometimes beyond the bound of a proof");
  if (const auto failed = files.end_results(end.results); !failed.empty()) {
    listener.error(failed);
    end.exit_code = std::max(end.exit_code, 1);
  }
  return end;
}

} // namespace

performed_program verify_program() {
  return {{
            .name = "verify",
            .description =
              "Proves runs of a schedule. Plain loop: a flush schedule computes "
              "the bits of a loop without actors. Replay: recorded actions of a "
              "run, repeated one by one, give the run's bits. Formula: the record "
              "follows the formulas of the schedule's paper.",
            .has_all = true,
            .keeps = false,
            .tells = true,
            .distributes = true,
            .defaults = {.model = {.width = 32, .length = 16},
                         .schedules = {.steps = 5},
                         .evaluation = {.samples = 0}},
          },
          perform_proofs};
}

} // namespace troupe
