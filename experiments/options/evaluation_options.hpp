// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

namespace troupe {

class option_list;

/// When a run is evaluated, and on how much; how much of it is proved.
struct evaluation_options {
  int every = 0;               ///< steps; 0: at the end.
  std::int64_t samples = 1000; ///< Of those that are held out.
  int verify = 0;              ///< The first steps, before it runs; 0: none.
};

void add_evaluation(option_list& to, evaluation_options& place);

/// What is wrong, and what is allowed; empty if nothing is.
std::string refusal(const evaluation_options& o);

} // namespace troupe
