// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <tl/expected.hpp>

#include <string>
#include <vector>

namespace troupe {

class option_list;

/// The programs of other systems that train the same network as troupe, in rounds that
/// alternate with troupe's.
struct comparison_options {
  std::vector<std::string> rows; ///< Names of PyTorch's programs; empty: no comparison.
};

/// Names of the PyTorch programs that `bench` can run, on the CPU or on a GPU.
const std::vector<std::string>& pytorch_rows(bool on_gpu);

void add_comparison(option_list& to, std::string& typed);

/// Reads "pytorch" or "pytorch:plain,1f1b"; an empty text has no rows. The error is one
/// sentence with the allowed names.
tl::expected<comparison_options, std::string> parse_comparison(const std::string& text,
                                                               bool on_gpu);

} // namespace troupe
