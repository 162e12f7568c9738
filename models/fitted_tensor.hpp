// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The shape of a tensor in a file, beside the shape of the parameter that it is to be.

#include "models/hugging_face.hpp"
#include "models/network.hpp"
#include "models/safetensors.hpp"

#include <tl/expected.hpp>

#include <map>
#include <optional>
#include <string>

namespace troupe {

/// A tensor with the shape of its parameter, and a sentence on the rows left out.
struct fitted_tensor {
  stored_tensor tensor;
  std::string note = {}; ///< Empty: the tensor is used whole.
};

/// Tensors by the names of their parameters.
using named_tensors = std::map<std::string, stored_tensor>;

/// The end of a sentence about tensors of other shapes than a gpt's: all options of the
/// model that have other values in the file; empty if none has.
std::string advice_on_sizes(const named_tensors& tensors, const model_options& model,
                            const std::optional<gpt2_config>& config);

/// The tensor, without the last rows of a table that is longer than the model needs:
/// positions behind --seq, and words that another tool added to make the vocabulary a
/// multiple of up to 128, or that the config does not count. Otherwise one sentence.
/// \param advice of advice_on_sizes(), the end of a sentence about a shape
tl::expected<fitted_tensor, std::string>
fitted(const parameter& p, const stored_tensor& t, const model_options& model,
       const std::optional<gpt2_config>& config, const std::string& advice);

} // namespace troupe
