// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/option_row.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// The options of all programs. An option that differs between programs has several
/// rows. The list stays valid until the program ends.
const option_rows& all_rows();

/// The options of a program, in the order of --help-all.
option_rows rows_of(const program_info& program);

/// The files that record an option.
/// \param recorded_name name in files: "--lr"
recorded_in files_with(std::string_view recorded_name);

/// The values that files record of a run, by name: "--lr".
/// \param training plan of a training, with its optimizer; null: only the options that
/// a file of weights records
std::map<std::string, std::string> recorded_options(const options& o,
                                                    const run_plan* training);

/// The name by which --change allows a recorded value to differ: "lr" for "--lr",
/// "clip" for "clip of". Empty if the value must stay.
std::string change_name_of(std::string_view recorded_name);

/// The names that --change accepts, each once.
std::vector<std::string> change_names();

/// The help text of an option; empty if there is no such option.
std::string help_of(std::string_view name);

} // namespace troupe
