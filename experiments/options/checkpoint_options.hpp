// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe {

class option_list;

/// The folder for a training's checkpoints, and the checkpoint from which the training
/// resumes.
struct checkpoint_options {
  std::string folder; ///< Folder of new checkpoints; empty: none.
  int every = 0;      ///< Steps from one checkpoint to the next; 0: none.
  int keep = 2;       ///< Number of checkpoints that stay.
  /// Folder of checkpoints, or one checkpoint; empty: the training starts at the first
  /// step.
  std::string resume;
  /// True if `resume` was typed as `auto`: the training resumes from the checkpoints of
  /// `folder`, if there are any.
  bool resumes_if_any = false;
  /// Names of options that may differ from the checkpoint's: "data,lr".
  std::string change;
};

void add_checkpoints(option_list& to, checkpoint_options& typed);

/// If `resume` is `auto`, sets `resumes_if_any`, and replaces `auto` by `folder`. If
/// `folder` has no checkpoints, `resume` becomes empty.
void find_checkpoints(checkpoint_options& o);

/// One sentence with the mistake and the allowed values; empty if the options are
/// valid.
std::string validation_error(const checkpoint_options& o);

} // namespace troupe
