// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <tl/expected.hpp>

#include <string>
#include <vector>

namespace troupe {

class option_list;

/// Names of the parts that `bench` measures, in the order of the measurements: on a GPU
/// if `on_gpu`, else on the CPU. The reference stays valid until the program ends.
const std::vector<std::string>& parts_of_bench(bool on_gpu);

/// Adds --parts.
/// \param typed receives the value of the parsed command line; outlives `to`
void add_parts(option_list& to, std::string& typed);

/// Reads "training,checks"; an empty text means all names of parts_of_bench(). The
/// error is one sentence with the allowed names.
tl::expected<std::vector<std::string>, std::string> parse_parts(const std::string& text,
                                                                bool on_gpu);

} // namespace troupe
