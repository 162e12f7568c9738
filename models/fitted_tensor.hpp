// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The shape of a tensor in a file, beside the shape of the parameter that it is to be.

#include "models/hugging_face.hpp"
#include "models/network.hpp"
#include "models/safetensors.hpp"

#include <tl/expected.hpp>

#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// A tensor with the shape of its parameter, and a sentence on the rows left out.
struct fitted_tensor {
  stored_tensor tensor;
  std::string note = {}; ///< Empty: the tensor is used whole.
};

/// The tensor, without the last rows of a table that is longer than the model needs:
/// positions behind --seq, and words that another tool added to make the vocabulary a
/// multiple of up to 128, or that the config does not count. Otherwise one sentence,
/// with the option that helps.
tl::expected<fitted_tensor, std::string>
fitted(const parameter& p, const stored_tensor& t, const model_options& model,
       const std::optional<gpt2_config>& config);

/// The end of a sentence about a block that only the file or only the model has: the
/// option that helps; empty if both have as many blocks.
std::string advice_on_blocks(const std::vector<std::string>& parameters,
                             const model_options& model);

} // namespace troupe
