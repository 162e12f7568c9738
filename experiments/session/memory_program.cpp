// SPDX-License-Identifier: BSD-3-Clause
#include "actors/checkpoints/gathered_state.hpp"
#include "experiments/options/setup.hpp"
#include "experiments/report/files.hpp"
#include "experiments/report/zero_table.hpp"
#include "experiments/session/interruption.hpp"
#include "experiments/session/performed_programs.hpp"
#include "models/utf8.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

namespace {

using nlohmann::ordered_json;

/// A short run under one exchange.
struct account_of_run {
  run_plan plan;
  run_result result;
};

int state_of(const run_plan& plan) {
  return optimizer::state_size(plan.work->optimizer);
}

/// Ranks of the first data replica, whose rows are printed; the rows of the other
/// replicas are equal.
int printed_ranks(const run_plan& plan) {
  return plan.ranks() / plan.mesh[axis::data];
}

double held(const run_result& result, int rank, memory_use use) {
  return static_cast<double>(
    result.peak_parts[static_cast<std::size_t>(rank)][static_cast<std::size_t>(use)]);
}

double held_for_training(const run_result& result, int rank) {
  return held(result, rank, memory_use::parameters)
         + held(result, rank, memory_use::gradients)
         + held(result, rank, memory_use::optimizer);
}

double moved(const run_result& result, traffic kind) {
  return static_cast<double>(result.bytes_moved[static_cast<std::size_t>(kind)]);
}

/// Appends text in the form of printf().
[[gnu::format(printf, 2, 3)]] void add(std::string& to, const char* form, ...) {
  std::array<char, 2048> text; // NOLINT: filled by vsnprintf; no text is as long
  std::va_list values;
  va_start(values, form);
  std::vsnprintf(text.data(), text.size(), form, values);
  va_end(values);
  to += text.data();
}

/// Megabytes by the formula, and the excess of the measured number.
std::string compared_with_formula(double sum,
                                  const std::optional<zero_bytes>& formula) {
  if (!formula)
    return "no formula";
  char text[64];
  std::snprintf(text, sizeof text, "%9.3f %+6.2f%%", formula->sum() / 1e6,
                (sum / formula->sum() - 1) * 100);
  return text;
}

void add_rows(std::string& out, const account_of_run& run) {
  const auto& [plan, r] = run;
  constexpr double mb = 1e6;
  for (int rank = 0; rank < printed_ranks(plan); ++rank) {
    const double sum = held_for_training(r, rank);
    add(out, "%-8s %4d  %10.3f %9.3f %9.3f %9.3f %17s  %11.3f %7.3f  %10.3f\n",
        rank == 0 ? std::string{plan.exchange->name}.c_str() : "", rank,
        held(r, rank, memory_use::parameters) / mb,
        held(r, rank, memory_use::gradients) / mb,
        held(r, rank, memory_use::optimizer) / mb, sum / mb,
        compared_with_formula(sum, zero_bytes_of(plan, rank)).c_str(),
        held(r, rank, memory_use::activations) / mb,
        held(r, rank, memory_use::passing) / mb,
        held(r, rank, memory_use::checkpoint) / mb);
  }
}

void add_traffic(std::string& out, const account_of_run& run) {
  const auto& [plan, r] = run;
  const double steps = plan.dims.steps * 1e6;
  const auto formula = zero_traffic_of(plan);
  add(out, "%-8s  %11.3f %9.3f  %12.3f %9.3f\n",
      std::string{plan.exchange->name}.c_str(), moved(r, traffic::gradients) / steps,
      formula.gradients / steps, moved(r, traffic::parameters) / steps,
      formula.parameters / steps);
}

void add_legend(std::string& out, const run_plan& plan) {
  const auto parameters = static_cast<double>(plan.work->whole.values());
  add(out,
      "\nby formula: fp32, %d values of optimizer state for each parameter, P "
      "parameters of a rank, N = %d\n"
      "  parameters 4P (zero3: 4P/N), gradients 4P (zero2, zero3: 4P/N), "
      "optimizer %dP (zero1 to zero3: divided by N)\n"
      "  no optimizer state in a second direction; no formula where a stage "
      "keeps several weight versions\n"
      "activations: largest sum of microbatches in flight\n"
      "passing: largest sum of messages, of running actions and of bf16 "
      "weights packed for products\n"
      "checkpoint: copies of parameters and optimizer state that a rank writes; 0 "
      "without checkpoints\n"
      "bytes of each rank for the whole model in mixed precision with Adam, "
      "without pipeline and tensor shards:\n",
      state_of(plan), plan.mesh[axis::data], 4 * state_of(plan));
  const struct {
    const char* formula;
    shared_out shares;
  } table[] = {{"16P", shared_out::nothing},
               {"4P + 12P/N", shared_out::optimizer_state},
               {"2P + 14P/N", shared_out::gradients},
               {"16P/N", shared_out::parameters}};
  for (const auto& [formula, shares] : table)
    add(out, "  %-10s = %10.3f MB\n", formula,
        zero_in_mixed_precision(parameters, plan.mesh[axis::data], shares).sum() / 1e6);
}

ordered_json to_json(const account_of_run& run) {
  const auto& [plan, r] = run;
  auto ranks = ordered_json::array();
  for (int rank = 0; rank < plan.ranks(); ++rank) {
    const auto formula = zero_bytes_of(plan, rank);
    ranks.push_back(
      {{"parameters", held(r, rank, memory_use::parameters)},
       {"gradients", held(r, rank, memory_use::gradients)},
       {"optimizer", held(r, rank, memory_use::optimizer)},
       {"activations", held(r, rank, memory_use::activations)},
       {"passing", held(r, rank, memory_use::passing)},
       {"checkpoint", held(r, rank, memory_use::checkpoint)},
       {"book", formula ? ordered_json{{"parameters", formula->parameters},
                                       {"gradients", formula->gradients},
                                       {"optimizer", formula->optimizer}}
                        : ordered_json(nullptr)}});
  }
  const auto formula = zero_traffic_of(plan);
  return {{"exchange", plan.exchange->name},
          {"ranks", ranks},
          {"moved",
           {{"gradients", moved(r, traffic::gradients)},
            {"parameters", moved(r, traffic::parameters)},
            {"book",
             {{"gradients", formula.gradients}, {"parameters", formula.parameters}}}}}};
}

/// Why there is no account of a run.
struct no_account {
  std::string sentence;
  int exit_code;
};

/// Performs a run under one exchange.
tl::expected<account_of_run, no_account> measure(const options& o,
                                                 const replica_exchange& exchange) {
  const auto fail = [](std::string sentence, int exit_code) {
    return tl::unexpected{no_account{std::move(sentence), exit_code}};
  };
  auto adjusted = o;
  adjusted.mesh.exchange = exchange;
  if (exchange.updates == update_by::all_replicas)
    adjusted.mesh.exchange.compression = o.mesh.exchange.compression;
  const auto shared = set_up(adjusted);
  if (!shared)
    return fail(shared.error(), 2);
  if (shared->runs.size() != 1)
    return fail("several schedules are given: give a single --schedule", 2);
  account_of_run run{shared->runs.front().plan, {}};
  run.plan.keep.weights = true; // so that a checkpoint is made at the end
  run.plan.copies.checkpoint_every = run.plan.dims.steps;
  run.result = perform(run.plan, {.save =
                                    [](const training_copies&) {
                                      // nop
                                    },
                                  .interrupted = &interruption()});
  if (run.result.outcome == ending::interrupted)
    return fail("interrupted; the results have the runs before the interruption",
                ended_by_user);
  if (run.result.outcome == ending::failed)
    return fail(run.result.failure, 1);
  return run;
}

std::string table_of(const options& o, const std::vector<account_of_run>& runs) {
  const auto& plan = runs.front().plan;
  std::string result;
  add(result,
      "%s of %lld parameters, %d data replicas, %d stages, tensor=%d%s, "
      "under %s; megabytes (10^6)\n\n"
      "exchange rank  parameters gradients optimizer       sum    by formula"
      "    activations passing  checkpoint\n",
      o.own.network ? "network" : o.model.model.c_str(),
      static_cast<long long>(plan.work->whole.values()), plan.mesh[axis::data],
      plan.dims.stages, plan.mesh[axis::tensor],
      plan.sequence_parallel ? " with --sequence-parallel" : "", plan.sch.name.c_str());
  for (const auto& run : runs)
    add_rows(result, run);
  result += "\nsent in a step, by all data replicas to each other\n"
            "exchange    gradients   formula    parameters   formula\n";
  for (const auto& run : runs)
    add_traffic(result, run);
  add_legend(result, plan);
  return result;
}

std::string results_of(const options& o, const std::vector<account_of_run>& runs) {
  const auto& plan = runs.front().plan;
  auto accounts = ordered_json::array();
  for (const auto& run : runs)
    accounts.push_back(to_json(run));
  const ordered_json results{{"command", o.output.command},
                             {"parameters", plan.work->whole.values()},
                             {"steps", plan.dims.steps},
                             {"runs", accounts}};
  return json_text(results, 2) + "\n";
}

tl::expected<program_end, std::string>
measure_memory(const options& o, const program_listener& listener) {
  output_files files{o};
  if (auto error = files.prepare(); !error.empty())
    return tl::unexpected{error};
  if (o.model.model == "moe")
    return tl::unexpected{
      std::string{"--model moe is not allowed, as ZeRO's formulas have no experts: "
                  "say another --model"}};
  if (o.mesh.data > 1 && o.mesh.recomputed_units > 0)
    return tl::unexpected{
      std::string{"--recompute blocks= is not allowed by zero2 and zero3, which memory "
                  "runs too: say --recompute stage"}};
  std::vector<account_of_run> runs;
  program_end end;
  for (const auto& exchange : exchange_catalog()) {
    if (exchange.shares == shared_out::nothing ? exchange.name != "ring"
                                               : !exchange.name.starts_with("zero"))
      continue; // other exchanges need as much memory as these
    auto run = measure(o, exchange);
    if (!run && run.error().exit_code == 2)
      return tl::unexpected{run.error().sentence};
    if (!run) {
      listener.error(run.error().sentence);
      end.exit_code = run.error().exit_code;
      break;
    }
    runs.push_back(std::move(*run));
  }
  if (runs.empty() || (end.exit_code != 0 && end.exit_code != ended_by_user))
    return end;
  end.table = table_of(o, runs);
  end.results = results_of(o, runs);
  if (!o.output.quiet)
    (o.output.results_on_stdout() ? std::cerr : std::cout) << end.table;
  if (const auto failed = files.end_results(end.results); !failed.empty()) {
    listener.error(failed);
    end.exit_code = 1;
  }
  return end;
}

} // namespace

performed_program memory_program() {
  return {
    {
      .name = "memory",
      .description =
        "Memory of each rank in a short run under each level of ZeRO: parameters, "
        "gradients, optimizer state, activations and copies for checkpoints. "
        "Messages between data replicas are counted too. Formulas of ZeRO's paper "
        "follow.",
      .names_exchange = false,
      .keeps = false,
      .tells = true,
      .defaults = {.mesh = {.stages = 1, .axes = "data=4"},
                   .schedules = {.names = {"1f1b"}, .steps = 2},
                   .run = {.clock = "virtual"}},
    },
    measure_memory};
}

} // namespace troupe
