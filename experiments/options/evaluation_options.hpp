#pragma once

#include <cstdint>
#include <string>

namespace troupe {

class option_list;

/// When a run is evaluated, and on how much.
struct evaluation_options {
  int every = 0;               ///< steps; 0: at the end.
  std::int64_t samples = 1000; ///< Of those that are held out.
};

void add_evaluation(option_list& to, evaluation_options& place);

/// What is wrong, and what is allowed; empty if nothing is.
std::string refusal(const evaluation_options& o);

} // namespace troupe
