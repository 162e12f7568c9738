// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The shape of a tensor in a file, compared with the shape of the parameter that the
// tensor becomes.

#include "models/hugging_face.hpp"
#include "models/network.hpp"
#include "models/safetensors.hpp"

#include <tl/expected.hpp>

#include <map>
#include <optional>
#include <string>

namespace troupe {

/// A tensor with the shape of the parameter, and a sentence on the rows left out.
struct fitted_tensor {
  stored_tensor tensor;
  std::string note = {}; ///< Empty: the tensor is used whole.
};

/// Tensors by the names of the parameters.
using named_tensors = std::map<std::string, stored_tensor>;

/// The end of a sentence about tensors whose shapes differ from a gpt's. Lists all
/// options of the model that have other values in the file; empty if no option has.
std::string advice_on_sizes(const named_tensors& tensors, const model_options& model,
                            const std::optional<gpt2_config>& config);

/// The tensor, without the last rows of a table that is longer than the model needs.
/// The rows left out are positions beyond --seq, or words that another tool added.
/// Added words make the vocabulary a multiple of up to 128, or are not counted by the
/// config. On error one sentence.
/// \param advice of advice_on_sizes(), the end of a sentence about a shape
tl::expected<fitted_tensor, std::string>
fitted(const parameter& p, const stored_tensor& t, const model_options& model,
       const std::optional<gpt2_config>& config, const std::string& advice);

} // namespace troupe
