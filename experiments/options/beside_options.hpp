// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <tl/expected.hpp>

#include <string>
#include <vector>

namespace troupe {

class option_list;

/// Other systems that train the same beside this one.
struct beside_options {
  std::vector<std::string> rows; ///< Of PyTorch's programs; empty: nothing is beside.
};

/// The programs of PyTorch that `bench` knows: on the CPU, and on a GPU.
const std::vector<std::string>& pytorch_rows(bool on_gpu);

void add_beside(option_list& to, std::string& place);

/// "pytorch", or "pytorch:plain,1f1b"; empty: nothing. On error says what is allowed.
tl::expected<beside_options, std::string> parse_beside(const std::string& text,
                                                       bool on_gpu);

} // namespace troupe
