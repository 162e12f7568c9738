#pragma once

#include "experiments/options/options.hpp"
#include "models/optimizer.hpp"

#include <tl/expected.hpp>

#include <string>

namespace troupe {

/// The optimizer that options describe. On error says what is wrong, and what is
/// allowed.
tl::expected<optimizer_options, std::string> optimizer_from(const options& o);

/// The weight decay that options mean: 0.01 of adamw and 0 of sgd unless given.
double weight_decay_of(const options& o);

} // namespace troupe
