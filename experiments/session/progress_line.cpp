// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/progress_line.hpp"

#include <cstdio>
#include <utility>

namespace troupe {

namespace {

template <class... Values>
std::string formatted(const char* format, Values... values) {
  char text[200];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

} // namespace

double all_of(const run_plan& plan) {
  return plan.work
           ? static_cast<double>(plan.work->batch * plan.dims.steps)
           : 1.0 * plan.mesh[axis::data] * plan.mesh[axis::tensor] * plan.dims.total();
}

std::shared_ptr<const double> count_microbatches(run_plan& plan) {
  auto done = std::make_shared<double>(0);
  // I and W are half a backward each. The second action of a pair is counted together
  // with the first.
  const auto part = [](int kind, int stage) {
    const auto operation = static_cast<op>(kind);
    const bool half =
      operation == op::input_gradient || operation == op::weight_gradient;
    return stage != 0 ? 0 : half ? 0.5 : operation == op::backward ? 1 : 0;
  };
  plan.machine.cost = [done, part,
                       cost = std::move(plan.machine.cost)](const work& executed) {
    double parts = part(executed.kind, executed.stage);
    for (const auto& paired : executed.also)
      parts += part(paired.kind, paired.stage);
    *done +=
      parts * (executed.done() - (executed.parts.empty() ? 0 : executed.start_share));
    return cost(executed);
  };
  return done;
}

// A simulation that ends at once prints nothing.
progress_line::progress_line(const run_plan& plan, bool quiet)
  : plan_(&plan), quiet_(quiet), line_(quiet, plan.work ? 0 : seconds_now()) {
  // nop
}

void progress_line::show(const progress& p, bool last) {
  report_waiting(p.waits_for);
  show_part(static_cast<double>(p.samples), "samples", p.loss, last);
}

void progress_line::show_simulation(double microbatches) {
  show_part(microbatches, "microbatches", {}, false);
}

/// \param unit of the count: samples or microbatches
void progress_line::show_part(double done, const char* unit, std::optional<double> loss,
                              bool last) {
  const double total = all_of(*plan_);
  throughput_.add(seconds_now(), done);
  if (!line_.is_due(last))
    return;
  std::vector<std::string> parts{
    formatted("%-12s %.0f of %.0f %s", plan_->sch.name.c_str(), done, total, unit)};
  if (loss)
    parts.push_back(formatted(", loss %.4f", *loss));
  if (const auto rate = last ? std::nullopt : throughput_.rate())
    parts.push_back(", " + rate_text(*rate) + "/s");
  if (const auto left = last ? std::nullopt : throughput_.left(total))
    parts.push_back(", " + time_left(*left));
  line_.write(parts, last);
}

void progress_line::show_evaluation(total_steps steps, const score& s) {
  auto line = formatted("%-12s step %d: evaluated loss %.4f", plan_->sch.name.c_str(),
                        steps.count, s.loss);
  if (s.accuracy)
    line += formatted(", accuracy %.1f%%", 100 * *s.accuracy);
  if (!quiet_)
    line_.write_whole(line);
}

/// Writes the reason for a wait, once for each long wait.
void progress_line::report_waiting(const std::string& for_whom) {
  const bool was_waiting = std::exchange(waits_, !for_whom.empty());
  if (waits_ && !was_waiting && !quiet_)
    line_.write_whole("no action has ended for a long time:\n" + for_whom);
}

} // namespace troupe
