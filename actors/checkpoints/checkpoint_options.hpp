// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace troupe {

/// The folder for a training's checkpoints, and the checkpoint from which the training
/// resumes.
struct checkpoint_options {
  std::string folder = {}; ///< Folder of new checkpoints; empty: none.
  int every = 0; ///< Steps from one checkpoint to the next; 0: no checkpoints.
  int keep = 2;  ///< Number of newest checkpoints that stay in `folder`.
  /// Folder of checkpoints, or one checkpoint; empty: the training starts at the first
  /// step. May be `auto` until find_checkpoints() is called.
  std::string resume = {};
  /// True if `resume` was typed as `auto`: the training resumes from the checkpoints of
  /// `folder`, if there are any. Set by find_checkpoints().
  bool resumes_if_any = false;
  /// Names of options that may differ from the checkpoint's: "data,lr".
  std::string change = {};
};

/// One sentence if the folder of --checkpoint or --resume exists and cannot be read,
/// with the system's reason; else an empty text.
std::string unreadable_folder_error(const checkpoint_options& o);

/// If `resume` is `auto`, sets `resumes_if_any`, and replaces `auto` by `folder`. If
/// `folder` has no checkpoints, `resume` becomes empty.
/// \pre unreadable_folder_error(o) is empty
void find_checkpoints(checkpoint_options& o);

/// One sentence with the mistake and the allowed values; empty if the options are
/// valid. No folder is read, and the names in `change` are not checked.
/// \pre find_checkpoints(o) was called, if `resume` was typed as `auto`
std::string validation_error(const checkpoint_options& o);

} // namespace troupe
