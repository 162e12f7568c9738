// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <tl/expected.hpp>

#include <string>
#include <vector>

namespace troupe {

/// The programs of other systems that train the same network as troupe, in rounds that
/// alternate with troupe's.
struct comparison_options {
  std::vector<std::string> rows; ///< Names of PyTorch's programs; empty: no comparison.
};

/// Names of the PyTorch programs that `bench` can run: on a GPU if `on_gpu`, else on
/// the CPU. The reference stays valid until the program ends.
const std::vector<std::string>& pytorch_rows(bool on_gpu);

/// Reads "pytorch:plain,1f1b", or "pytorch" for all names of pytorch_rows(). An empty
/// text and "pytorch:" have no rows. The error is one sentence with the allowed names.
tl::expected<comparison_options, std::string> parse_comparison(const std::string& text,
                                                               bool on_gpu);

/// Names of the parts that `bench` measures, in the order of the measurements: on a GPU
/// if `on_gpu`, else on the CPU. The reference stays valid until the program ends.
const std::vector<std::string>& parts_of_bench(bool on_gpu);

/// Reads "training,checks"; an empty text means all names of parts_of_bench(). The
/// error is one sentence with the allowed names.
tl::expected<std::vector<std::string>, std::string> parse_parts(const std::string& text,
                                                                bool on_gpu);

} // namespace troupe
