// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The names of tensors in files of other tools, mapped to names of a network's
// parameters.

#include "models/network.hpp"
#include "models/safetensors.hpp"

#include <string>
#include <vector>

namespace troupe {

// The tables of a gpt's parameters.
inline constexpr const char* positions_name = "transformer.wpe.weight";
inline constexpr const char* words_name = "transformer.wte.weight";
inline constexpr const char* head_name = "lm_head.weight";

/// Maps tensors of a file to parameters.
class tensor_names {
public:
  tensor_names(const std::vector<stored_tensor>& tensors, const network<float>& whole);

  /// True if the tensor is one of the causal masks that older files carry in addition
  /// to weights. The test is the end of the name, `.attn.bias` or `.attn.masked_bias`,
  /// in a network that reads tokens.
  bool is_mask(const std::string& tensor) const;

  /// Returns the name of the tensor's parameter. A prefix that all names of the file
  /// share, as `_orig_mod.`, is removed if more names are then names of the network's
  /// parameters. In a network that reads tokens, `transformer.` is added where a tool
  /// left that prefix out.
  /// \param tensor name in the file of the constructor's tensors
  std::string parameter_of(const std::string& tensor) const;

private:
  bool reads_tokens_;
  std::string prefix_; ///< Prefix of all names; ends with a dot, or is empty.
};

} // namespace troupe
