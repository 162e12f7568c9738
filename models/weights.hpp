// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The initial weights of a run: from a seed or from a file, and the writing of files of
// weights.

#include "models/network.hpp"
#include "models/safetensors.hpp"

#include <tl/expected.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace troupe {

/// Fills the bucket of a layer with a run's initial values.
/// \param layer index in the network
using weight_source = std::function<void(std::size_t layer, float* bucket)>;

/// The initial values of each parameter, for a seed. The result shares ownership of the
/// layers.
/// \pre the network is not a tensor shard
weight_source initial_weights(const network<float>& whole, std::uint64_t seed);

/// The values in a file of weights (safetensors.hpp), or in several with an index. The
/// tensors must be exactly the network's parameters, by name and shape. All values must
/// be finite and of a type that is read (float_types.hpp).
///
/// One prefix that all names share is left out. The last rows of tables that are longer
/// than the model needs are left out too (fitted_tensor.hpp). For a gpt, files of the
/// Hugging Face Hub load as well. Such files have names without `transformer.`,
/// attention masks (ignored), and no `lm_head.weight` where the head is `wte`. If tied,
/// an `lm_head.weight` in the file must equal `wte` to the bit. A gpt's config
/// (hugging_face.hpp) is compared with the network. The error is one sentence, and the
/// file is then refused whole. Errors are a tensor that is missing, unknown, of another
/// shape or type, not finite or not tied. A key of the config that differs is an error
/// too. The returned source reads the open files at each call, and throws
/// std::runtime_error if a file cannot be read any more.
/// \throws std::runtime_error if a file becomes shorter meanwhile, or reading fails
/// \param notes may be null; else receives a sentence for each tensor whose last rows
/// are left out, and one if values of F64 are rounded
tl::expected<weight_source, std::string>
weights_from(const std::filesystem::path& path, const network<float>& whole,
             std::vector<std::string>* notes = nullptr);

/// The first value that is not finite, as "NAME[7] is nan"; empty if all values are
/// finite.
/// \param buckets one for each layer
std::string not_finite(const network<float>& whole,
                       const std::vector<const float*>& buckets);

/// Writes all parameters to a file, a tied matrix once. If a value is not finite or too
/// large for `stored`, or both copies of a tied matrix differ, the file stays
/// unchanged. A gpt's `model.safetensors` also gets the config that Hugging Face needs
/// (hugging_face.hpp). Returns empty on success, else one sentence. If only the config
/// cannot be written, the file of weights is written nevertheless.
/// \param buckets one for each layer
/// \param stored type that values are rounded to, in the file alone; values too large
/// for the type are an error
std::string save_weights(const std::filesystem::path& path, const network<float>& whole,
                         const std::vector<const float*>& buckets,
                         const file_metadata& metadata = {},
                         precision stored = precision::fp32);

} // namespace troupe
