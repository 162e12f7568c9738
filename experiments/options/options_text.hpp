// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/options.hpp"

#include <tl/expected.hpp>

#include <string>

namespace troupe {

// Options as text, so that another process sets up the same runs. Places of output are
// left out: who sends the text writes the results.

/// JSON of everything that `set_up` and collectives read.
/// \throws std::exception if a path is not UTF-8
std::string to_text(const options& o);

/// The options that `to_text` wrote. On error says why the text is none.
tl::expected<options, std::string> options_from(const std::string& text);

} // namespace troupe
