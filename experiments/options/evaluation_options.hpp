// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

namespace troupe {

class option_list;

/// The interval and the number of samples of a run's evaluations. Also the number of
/// first steps that --verify compares with a plain loop.
struct evaluation_options {
  /// Steps from one evaluation to the next, before the evaluation at the end; 0: only
  /// at the end.
  int every = 0;
  /// Largest number of held-out samples in an evaluation; 0: no evaluation.
  std::int64_t samples = 1000;
  /// Number of first steps that are proved before the run; 0: no proof.
  int verify = 0;
};

/// Adds the options of evaluations, and --verify.
/// \param typed receives the values of the parsed command line; outlives `to`
void add_evaluation(option_list& to, evaluation_options& typed);

/// One sentence with the mistake and the allowed values; empty if the options are
/// valid.
std::string validation_error(const evaluation_options& o);

} // namespace troupe
