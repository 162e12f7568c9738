// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/network.hpp"
#include "models/safetensors.hpp"

#include <tl/expected.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace troupe {

/// Fills the bucket of a layer, counted over the network, with a run's first values.
using weight_source = std::function<void(std::size_t layer, float* bucket)>;

/// The values that each parameter begins with, for a seed.
weight_source initial_weights(const network<float>& whole, std::uint64_t seed);

/// The values in a file of weights (safetensors.hpp), or in several with their index.
/// They must be the network's parameters, by name and shape, of a type that is read
/// (float_types.hpp), all finite, and nothing else.
///
/// One prefix that all names share is left out, and so are the last rows of tables that
/// are longer than the model needs (fitted_tensor.hpp). For gpt also the Hub's own
/// files load: names without `transformer.`, attention masks (ignored), and no
/// `lm_head.weight` where it is `wte`; tied, one that there is equals `wte` to the bit.
/// A gpt's config (hugging_face.hpp) is held against the network. The error is one
/// sentence: a tensor is missing, unknown, of another shape or type, not finite or not
/// tied, or a key of the config differs; the file is then refused whole.
/// \param notes may be null; else gets a sentence for each tensor that is not used as
/// the file has it
tl::expected<weight_source, std::string>
weights_from(const std::filesystem::path& path, const network<float>& whole,
             std::vector<std::string>* notes = nullptr);

/// The first value that is not finite, as "NAME[7] is nan"; empty if there is none.
/// \param buckets a layer each
std::string not_finite(const network<float>& whole,
                       const std::vector<const float*>& buckets);

/// Writes all parameters, if they are finite, and a tied matrix once, if its copies are
/// equal; else the file stays what it was. A gpt's `model.safetensors` gets the config
/// that Hugging Face wants (hugging_face.hpp).
/// \param buckets a layer each
/// \param stored what values are rounded to, for the file alone; those too large for it
/// are not finite. Empty on success, else what went wrong.
std::string save_weights(const std::filesystem::path& path, const network<float>& whole,
                         const std::vector<const float*>& buckets,
                         const file_metadata& metadata = {},
                         precision stored = precision::fp32);

} // namespace troupe
