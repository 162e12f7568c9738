// compare: trains the same model under several schedules and shows them side by side

#include "experiments/session/session.hpp"

using namespace troupe;

int main(int argc, char** argv) {
  const program_about about{
    .name = "compare",
    .description =
      "Trains the same model on the same data under several schedules, and "
      "shows speed, memory, staleness and loss side by side.",
    .defaults = {.schedules = {"all"}, .new_report = "runs/compare"},
  };
  return run_program(about, argc, argv,
                     [](const options& o) { return run_session(o, set_up_training); });
}
