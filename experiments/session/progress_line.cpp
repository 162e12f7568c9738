#include "experiments/session/progress_line.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <utility>

namespace troupe {

namespace {

double seconds_now() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

template <class... Values>
std::string formatted(const char* format, Values... values) {
  char text[200];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

} // namespace

std::shared_ptr<const double> count_microbatches(run_plan& plan) {
  auto done = std::make_shared<double>(0);
  // I and W are half a backward each; the second of a pair is told with the first.
  const auto part = [](int kind, int stage) {
    const auto what = static_cast<op>(kind);
    const bool half = what == op::input_gradient || what == op::weight_gradient;
    return stage != 0 ? 0 : half ? 0.5 : what == op::backward ? 1 : 0;
  };
  plan.cost = [done, part, cost = std::move(plan.cost)](const work& what) {
    double parts = part(what.kind, what.stage);
    for (const auto& other : what.also)
      parts += part(other.kind, other.stage);
    *done += parts * (what.done() - (what.parts.empty() ? 0 : what.begun));
    return cost(what);
  };
  return done;
}

// A simulation that is over at once has nothing to say.
progress_line::progress_line(const run_plan& plan, bool quiet)
  : plan_(plan),
    quiet_(quiet),
    terminal_(isatty(STDERR_FILENO) != 0),
    shown_at_(plan.work ? 0 : seconds_now()) {
  // nop
}

void progress_line::show(const progress& p, bool last) {
  tell_of_waiting(p.waits_for);
  if (!is_due(last))
    return;
  auto line = formatted("%-12s %lld of %lld samples", plan_.sch.name.c_str(),
                        static_cast<long long>(p.samples),
                        static_cast<long long>(plan_.work->batch * plan_.dims.steps));
  if (p.loss)
    line += formatted(", loss %.4f", *p.loss);
  write(line, last);
}

void progress_line::show_simulation(double microbatches) {
  if (is_due(false))
    write(formatted("%-12s %.0f of %.0f microbatches", plan_.sch.name.c_str(),
                    microbatches, 1.0 * plan_.data * plan_.tensor * plan_.dims.total()),
          false);
}

void progress_line::show_evaluation(int steps, const score& s) {
  auto line = formatted("%-12s step %d: evaluated loss %.4f", plan_.sch.name.c_str(),
                        steps, s.loss);
  if (s.accuracy)
    line += formatted(", accuracy %.1f%%", 100 * *s.accuracy);
  if (!quiet_)
    write(line, true);
}

void progress_line::end() {
  if (changes_)
    std::fprintf(stderr, "\r%78s\r", "");
  changes_ = false;
}

/// Says once what a run waits for, each time that it has for long.
void progress_line::tell_of_waiting(const std::string& for_whom) {
  const bool before = std::exchange(waits_, !for_whom.empty());
  if (waits_ && !before && !quiet_)
    write("no action has ended for a while:\n" + for_whom, true);
}

bool progress_line::is_due(bool last) {
  const double now = seconds_now();
  if (quiet_ || (!last && now - shown_at_ < (terminal_ ? 0.2 : 5)))
    return false;
  shown_at_ = now;
  return true;
}

void progress_line::write(const std::string& line, bool stays) {
  if (terminal_)
    std::fprintf(stderr, "\r%-78s%s", line.c_str(), stays ? "\n" : "");
  else
    std::fprintf(stderr, "%s\n", line.c_str());
  std::fflush(stderr);
  changes_ = terminal_ && !stays;
}

} // namespace troupe
