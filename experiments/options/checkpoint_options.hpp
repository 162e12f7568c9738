// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe {

class option_list;

/// Where a training is saved so that it can go on, and where it goes on from.
struct checkpoint_options {
  std::string folder; ///< Empty: no checkpoints.
  int every = 0;      ///< Steps.
  int keep = 2;       ///< Checkpoints.
  std::string resume; ///< Folder or checkpoint; empty: the training starts anew.
  /// Whether that was typed as `auto`: the checkpoints of `folder`, if it has any.
  bool resumes_if_any = false;
  std::string change; ///< Names of what may differ from then: "data,lr".
};

void add_checkpoints(option_list& to, checkpoint_options& place);

/// Gives `resume` its folder if it was typed as `auto`.
void find_checkpoints(checkpoint_options& o);

/// What is wrong, and what is allowed; empty if nothing is.
std::string refusal(const checkpoint_options& o);

} // namespace troupe
