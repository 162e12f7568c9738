// collectives: measures collectives in virtual time, beside the formulas of textbooks
// SPDX-License-Identifier: BSD-3-Clause

#include "experiments/session/collectives.hpp"

#include "experiments/report/files.hpp"
#include "experiments/session/interruption.hpp"
#include "experiments/session/program.hpp"
#include "models/utf8.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <iostream>

using namespace troupe;

namespace {

using json = nlohmann::ordered_json;

void print_heading(std::FILE* out, const collective_options& asked, int ranks) {
  char sums[48] = "";
  if (asked.sum_rate > 0)
    std::snprintf(sums, sizeof sums, ", sums %g bytes/s", asked.sum_rate);
  std::fprintf(
    out,
    "%d %s, arrays of n = %lld bytes, latency %g ms, bandwidth %g "
    "bytes/s%s\n\n%-14s  %-8s  %6s  %8s  %14s  %14s  %11s  %11s  %-7s  %s\n",
    ranks, ranks == 1 ? "rank" : "ranks", static_cast<long long>(4 * asked.values),
    static_cast<double>(asked.machines.model.inside.latency) / 1e6,
    asked.machines.model.inside.bytes_per_second, sums, "operation", "by", "rounds",
    "messages", "bytes in all", "peak", "time ms", "by formula", "result", "grows as");
}

std::string milliseconds(std::optional<double> seconds) {
  char text[32] = "-";
  if (seconds)
    std::snprintf(text, sizeof text, "%.4f", *seconds * 1e3);
  return text;
}

void print(std::FILE* out, const collective_measurement& m) {
  std::fprintf(
    out, "%-14s  %-8s  %6d  %8lld  %14lld  %14lld  %11s  %11s  %-7s  %s\n",
    std::string{name_of(m.order.operation)}.c_str(), std::string{m.order.name}.c_str(),
    m.sent.rounds, static_cast<long long>(m.sent.messages),
    static_cast<long long>(m.sent.bytes), static_cast<long long>(m.sent.peak_bytes),
    milliseconds(m.seconds).c_str(), milliseconds(m.formula_seconds).c_str(),
    m.is_right ? "right" : "WRONG", std::string{m.order.growth}.c_str());
  std::fflush(out);
}

void print(std::FILE* out, int ranks, const std::optional<crossover>& c) {
  if (c)
    std::fprintf(out,
                 "\nall_reduce over %d ranks: tree is faster below %.0f bytes, by "
                 "formula below %.0f; ring is faster above\n",
                 ranks, c->measured, c->formula_bytes);
}

void print_legend(std::FILE* out, const collective_options& asked,
                  std::int64_t checked) {
  const bool adds = asked.sum_rate > 0;
  std::fprintf(
    out,
    "\nbytes in all: bytes of all messages\n"
    "peak: most bytes that a rank sends in a round\n"
    "by formula: rounds * latency + bytes sent one after another / bandwidth%s;\n"
    "  measured time may be %s if the number of ranks is no power of two\n"
    "result: right if equal to a plain loop's result to the bit, for arrays of %lld "
    "values\n"
    "grows as: growth of time, of bytes in all (total) and of peak, for K ranks and "
    "arrays of n bytes;\n"
    "  time: number of rounds; log K + n: log K rounds, which send n bytes in sum\n",
    adds ? " + the bytes that a rank adds / the rate of sums" : "",
    adds ? "shorter or longer" : "shorter", static_cast<long long>(checked));
}

json to_json(const collective_measurement& m, std::int64_t values) {
  return {{"operation", name_of(m.order.operation)},
          {"algorithm", m.order.name},
          {"ranks", m.ranks},
          {"values", values},
          {"rounds", m.sent.rounds},
          {"messages", m.sent.messages},
          {"bytes", m.sent.bytes},
          {"peak_bytes", m.sent.peak_bytes},
          {"seconds", m.seconds},
          {"book",
           {{"rounds", m.formula_cost.rounds},
            {"messages", m.formula_cost.messages},
            {"bytes", m.formula_cost.bytes},
            {"peak_bytes", m.formula_cost.peak_bytes},
            {"seconds", m.formula_seconds ? json(*m.formula_seconds) : json(nullptr)}}},
          {"growth", m.order.growth},
          {"checked_values", m.checked_values},
          {"right", m.is_right}};
}

json to_json(int ranks, const std::optional<crossover>& c) {
  return {{"ranks", ranks},
          {"bytes", c ? json(c->measured) : json(nullptr)},
          {"book_bytes", c ? json(c->formula_bytes) : json(nullptr)}};
}

bool compares_ring_and_tree(const collective_options& asked) {
  const auto has = [&](std::string_view name) {
    return std::ranges::any_of(asked.orders, [&](const auto& order) {
      return order.operation == collective_operation::all_reduce && order.name == name;
    });
  };
  return has("ring") && has("tree");
}

int collectives(const options& o) {
  const auto& asked = o.collectives;
  output_files files{o};
  if (const auto error = files.prepare(); !error.empty()) {
    std::cerr << "collectives: " << error << '\n';
    return 2;
  }
  std::FILE* const out = o.output.results_on_stdout() ? stderr : stdout;
  json runs = json::array(), crossovers = json::array();
  int exit_code = 0;
  for (const int ranks : asked.ranks) {
    if (interruption())
      break;
    std::int64_t checked = 0;
    if (!o.output.quiet)
      print_heading(out, asked, ranks);
    for (const auto& order : asked.orders) {
      if (interruption())
        break;
      const auto m = measure(asked, order, ranks);
      if (!o.output.quiet)
        print(out, m);
      runs.push_back(to_json(m, asked.values));
      checked = m.checked_values;
      if (!m.is_right) {
        std::cerr << "collectives: " << name_of(order.operation) << " by " << order.name
                  << " over " << ranks
                  << " ranks differs from the result of a plain loop\n";
        exit_code = 1;
      }
    }
    if (compares_ring_and_tree(asked) && !interruption()
        && asked.machines.model.machine_of(ranks - 1) == 0) {
      const auto c =
        ring_beats_tree(ranks, asked.machines.model.inside, asked.sum_rate);
      crossovers.push_back(to_json(ranks, c));
      if (!o.output.quiet)
        print(out, ranks, c);
    }
    if (!o.output.quiet) {
      print_legend(out, asked, checked);
      std::fprintf(out, ranks == asked.ranks.back() ? "" : "\n");
    }
  }
  json results{
    {"command", o.output.command},
    {"latency", static_cast<double>(asked.machines.model.inside.latency) / 1e9},
    {"bandwidth", asked.machines.model.inside.bytes_per_second},
    {"runs", runs},
    {"ring_beats_tree", crossovers}};
  if (asked.sum_rate > 0)
    results["sum"] = asked.sum_rate;
  const auto text = json_text(results, 2) + "\n";
  if (const auto failed = files.end_results(text); !failed.empty()) {
    std::cerr << "collectives: " << failed << '\n';
    return 1;
  }
  if (!interruption())
    return exit_code;
  std::cerr << "collectives: interrupted; the results have the measurements before the "
               "interruption\n";
  return ended_by_user;
}

} // namespace

int main(int argc, char** argv) {
  const program_info program{
    .name = "collectives",
    .description =
      "Collectives between actors in virtual time. A rank has one port to all others. "
      "Costs of algorithms are measured from messages and compared with formulas.",
    .trains = false,
    .keeps = false,
    .exchanges = true,
  };
  return run_program(program, argc, argv, collectives);
}
