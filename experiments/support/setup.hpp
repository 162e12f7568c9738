#pragma once

#include "actors/company.hpp"
#include "experiments/support/cost_options.hpp"
#include "experiments/support/options.hpp"
#include "models/evaluation.hpp"

#include <tl/expected.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace troupe {

/// One run that a user asked for.
struct run_request {
  std::string text; ///< As typed: "ampnet:max_active_keys=8,lr=0.01".
  run_plan plan;
  /// The schedule's parameters and options of its own, as given.
  std::vector<std::pair<std::string, std::string>> parameters;
};

/// Everything the programs share between runs.
struct setup {
  model_options model;
  std::string data; ///< Its description.
  std::optional<double> loss_floor;
  bool evaluates_training_data = false; ///< As the data set says.
  std::vector<run_request> runs;
};

/// Samples that evaluations take at once.
inline std::int64_t evaluation_batch(const run_plan& plan) {
  return std::clamp<std::int64_t>(plan.work->batch, 1, 64);
}

/// Looks at options; says what is wrong with the first that is, and what is allowed.
tl::expected<setup, std::string> set_up_training(const options& o);
tl::expected<setup, std::string> set_up_simulation(const options& o);

/// Splits "gpipe,ampnet:max_active_keys=8,lr=0.01,2bw" into schedules: a comma begins a
/// new one unless a parameter (key=value) follows it.
std::vector<std::string> split_schedules(const std::string& text);

/// What --mesh says: "data=2,pipe=4,tensor=2,expert=2". `stages` are those of --stages.
struct mesh_options {
  int data = 1;
  int stages;
  int tensor = 1;
  int expert = 1;
};
tl::expected<mesh_options, std::string> parse_mesh(const std::string& text, int stages);

} // namespace troupe
