// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

namespace troupe {

class option_list;

/// The times and the samples of a run's evaluations, and the number of steps to prove.
struct evaluation_options {
  int every = 0;               ///< Steps between evaluations; 0: only at the end.
  std::int64_t samples = 1000; ///< Held-out samples of an evaluation; 0: none.
  int verify = 0;              ///< First steps that are proved before the run; 0: none.
};

void add_evaluation(option_list& to, evaluation_options& typed);

/// One sentence with the mistake and the allowed values; empty if the options are
/// valid.
std::string validation_error(const evaluation_options& o);

} // namespace troupe
