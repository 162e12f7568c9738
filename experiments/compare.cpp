// compare: trains the same model under several schedules and shows them side by side

#include "experiments/support/session.hpp"

#include <ctime>

using namespace troupe;

namespace {

/// A folder that no other start of the program has: runs/compare-20260131-235959.
std::string new_folder() {
  char text[64];
  const auto now = std::time(nullptr);
  std::strftime(text, sizeof text, "runs/compare-%Y%m%d-%H%M%S", std::localtime(&now));
  return text;
}

} // namespace

int main(int argc, char** argv) {
  const program_about about{
    .name = "compare",
    .description =
      "Trains the same model on the same data under several schedules, and "
      "shows speed, memory, staleness and loss side by side.",
    .defaults = {.schedules = {"all"}},
  };
  return run_program(about, argc, argv, [](options o) {
    if (o.report.empty())
      o.report = new_folder();
    return run_session(o, set_up_training(o));
  });
}
