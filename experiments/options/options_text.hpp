// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/options.hpp"

#include <tl/expected.hpp>

#include <string>

namespace troupe {

// Options as JSON text, so that another process sets up the same runs. Paths of output
// are left out: the sender of the text writes the results.

/// JSON of all options that `set_up` and collectives read.
/// \throws std::exception if a path is not UTF-8
std::string to_text(const options& o);

/// Reads a text that `to_text` wrote. The error is one sentence: why the text has no
/// options.
tl::expected<options, std::string> options_from(const std::string& text);

} // namespace troupe
