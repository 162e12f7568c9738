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

/// Returns the end of a sentence about tensors whose shapes differ from the model's.
/// The text lists the sizes in the file that do not fit `model`, as options to give or
/// keys of the config to correct. Rows that fitted() leaves out are no misfit. Empty if
/// all sizes fit.
std::string advice_on_sizes(const named_tensors& tensors, const model_options& model,
                            const std::optional<gpt2_config>& config);

/// Returns the tensor, cut to the shape of parameter `p`. A table with more rows than
/// the model needs loses its last rows: positions beyond --seq, or words that another
/// tool added. Words count as added if the config's vocabulary has the model's size.
/// Words also count as added if the table's rows are the model's vocabulary, rounded up
/// to a multiple of 2, 4, .. or 128. The error is one sentence about the type or the
/// shape.
/// \param advice of advice_on_sizes(), the end of a sentence about a shape
tl::expected<fitted_tensor, std::string>
fitted(const parameter& p, const stored_tensor& t, const model_options& model,
       const std::optional<gpt2_config>& config, const std::string& advice);

} // namespace troupe
