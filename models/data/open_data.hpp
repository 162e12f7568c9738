#pragma once

#include "models/data/data_set.hpp"
#include "models/model_options.hpp"

#include <tl/expected.hpp>

#include <memory>
#include <string>

namespace troupe {

/// The data that `text` names: `synthetic`, `text:PATH`, `tokens:FILE`, the same two
/// with `,order=sequential` behind, or `mnist:FOLDER`, for a model of this kind and
/// size. `synthetic` needs no file: for models of text it is a Markov source, for those
/// of images (lenet, lenet5, mlp) it draws ten kinds of shapes of 28 by 28 pixels, as
/// MNIST's are. On error says what is wrong, or what can be named.
tl::expected<std::shared_ptr<const data_set>, std::string>
open_data(const std::string& text, const model_options& model, std::uint64_t seed);

} // namespace troupe
