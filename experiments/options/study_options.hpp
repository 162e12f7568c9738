// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <tl/expected.hpp>

#include <string>
#include <vector>

namespace troupe {

/// Options of a study, as typed by the user.
struct typed_study {
  std::vector<std::string> varied; ///< "microbatches=4,8", one entry per option.
  int seeds = 1;         ///< Runs of each combination, each with its own seed.
  int jobs = 1;          ///< Runs at a time.
  std::string continued; ///< Folder of a study that was cut short.
};

/// An option that a study varies, and its values.
struct varied_option {
  std::string name; ///< Without dashes: "microbatches".
  std::vector<std::string> values;
};

/// Parses "microbatches=4,8". Where the values contain a semicolon, semicolons separate
/// values: "mesh=data=2,pipe=2;pipe=4". The error is one sentence.
tl::expected<varied_option, std::string> parse_varied(const std::string& text);

/// One sentence about numbers out of range, else an empty text.
std::string validation_error(const typed_study& study);

} // namespace troupe
