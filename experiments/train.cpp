// train: trains one model under one schedule; evaluates, saves and resumes from weights

#include "experiments/session/session.hpp"

using namespace troupe;

int main(int argc, char** argv) {
  const program_about about{
    .name = "train",
    .description = "Trains any model on any data under one schedule.",
    .defaults = {.schedules = {"1f1b"}},
  };
  return run_program(about, argc, argv,
                     [](const options& o) { return run_session(o, set_up_training); });
}
