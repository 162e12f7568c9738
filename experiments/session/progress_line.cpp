// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/progress_line.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
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

/// Columns of a line that the terminal does not break; the width may change at any
/// time.
std::size_t columns() {
  winsize size{};
  constexpr std::size_t usual = 78;
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1
           ? size.ws_col - 1
           : usual;
}

} // namespace

double all_of(const run_plan& plan) {
  return plan.work
           ? static_cast<double>(plan.work->batch * plan.dims.steps)
           : 1.0 * plan.mesh[axis::data] * plan.mesh[axis::tensor] * plan.dims.total();
}

std::string fitting(const std::vector<std::string>& parts, std::size_t width) {
  std::string line;
  for (const auto& part : parts) {
    if (!line.empty() && line.size() + part.size() > width)
      break;
    line += part.substr(0, width);
  }
  return line;
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
  : plan_(&plan),
    quiet_(quiet),
    terminal_(isatty(STDERR_FILENO) != 0),
    shown_at_(plan.work ? 0 : seconds_now()) {
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
  if (!is_due(last))
    return;
  std::vector<std::string> parts{
    formatted("%-12s %.0f of %.0f %s", plan_->sch.name.c_str(), done, total, unit)};
  if (loss)
    parts.push_back(formatted(", loss %.4f", *loss));
  if (const auto rate = last ? std::nullopt : throughput_.rate())
    parts.push_back(", " + rate_text(*rate) + "/s");
  if (const auto left = last ? std::nullopt : throughput_.left(total))
    parts.push_back(", " + time_left(*left));
  write(fitting(parts, terminal_ ? columns() : std::string::npos), last);
}

void progress_line::show_evaluation(total_steps steps, const score& s) {
  auto line = formatted("%-12s step %d: evaluated loss %.4f", plan_->sch.name.c_str(),
                        steps.count, s.loss);
  if (s.accuracy)
    line += formatted(", accuracy %.1f%%", 100 * *s.accuracy);
  if (!quiet_)
    write(line, true);
}

void progress_line::end() {
  std::fputs(wiped().c_str(), stderr);
  changes_ = 0;
}

/// The text that erases a changing line.
std::string progress_line::wiped() const {
  return changes_ > 0 ? '\r' + std::string(std::min(changes_, columns()), ' ') + '\r'
                      : "";
}

/// Writes the reason for a wait, once for each long wait.
void progress_line::report_waiting(const std::string& for_whom) {
  const bool was_waiting = std::exchange(waits_, !for_whom.empty());
  if (waits_ && !was_waiting && !quiet_)
    write("no action has ended for a long time:\n" + for_whom, true);
}

bool progress_line::is_due(bool last) {
  const double now = seconds_now();
  if (quiet_ || (!last && now - shown_at_ < (terminal_ ? 0.2 : 5)))
    return false;
  shown_at_ = now;
  return true;
}

void progress_line::write(const std::string& line, bool stays) {
  const bool will_change = terminal_ && !stays;
  if (!terminal_ && line == written_) // a short run's first line is its last
    return;
  written_ = line;
  const auto text = wiped() + line + (will_change ? "" : "\n");
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
  changes_ = will_change ? line.size() : 0;
}

} // namespace troupe
