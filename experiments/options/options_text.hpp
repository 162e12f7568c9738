// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/options.hpp"

#include <tl/expected.hpp>

#include <string>

namespace troupe {

// Options as JSON text, so that another process sets up the same runs. The options of
// output are left out: the sender of the text writes the results.

/// JSON of the options of runs and of collectives, with the contents of schedule files.
/// The groups for nodes, inference, comparison and output are left out, and `parts`.
/// Own parts are sent as text_of(). Left out too are `stored` of the model, `origin` of
/// the data, `choose` of the run, `change` and `resumes_if_any` of checkpoints,
/// `measures_units` and `names_pipe` of the mesh.
/// \throws std::exception if a path, or the content of a schedule's file, is not UTF-8
std::string to_text(const options& o);

/// Reads a text that `to_text` wrote. Options that `to_text` leaves out get their
/// defaults. The text may come from another process, and the ranges of most values are
/// not checked. The error is one sentence: why no options could be read.
/// \param own of this process; must have the facts of the sender's
tl::expected<options, std::string> options_from(const std::string& text,
                                                own_parts own = {});

} // namespace troupe
