// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/checkpoints/checkpoint_folder.hpp"
#include "actors/checkpoints/checkpoint_options.hpp"
#include "kernels/folder_lock.hpp"

#include <functional>
#include <future>
#include <string>

namespace troupe {

/// Writes a run's checkpoints on a separate thread while the run continues; each
/// checkpoint waits for the previous one. If no thread can start, save() writes the
/// checkpoint. The reason of a failure is reported once. The number of further
/// checkpoints that fail for the same reason is reported after the last of them. One
/// thread calls all functions.
class checkpoint_saver {
public:
  /// \param o outlives this object
  /// \param plan outlives this object
  /// \param complain receives a sentence about each reported failure, on the thread
  /// that calls this object. Objects to which the function refers outlive this object
  checkpoint_saver(const checkpoint_options& o, const run_plan& plan,
                   std::function<void(const std::string&)> complain);

  /// Waits until all checkpoints are written or have failed, and reports failures.
  ~checkpoint_saver();

  checkpoint_saver(const checkpoint_saver&) = delete;
  checkpoint_saver& operator=(const checkpoint_saver&) = delete;

  /// Waits for the previous checkpoint, then starts to write `saved`.
  void save(training_copies saved);
  /// Waits until all checkpoints are written or have failed, and reports a failure that
  /// has a new reason.
  void wait();

private:
  void note(const checkpoint_outcome& outcome);
  void count_failures();

  const checkpoint_options& options_;
  const run_plan& plan_;
  std::function<void(const std::string&)> complain_;
  known_checkpoints known_; // used by one write at a time
  std::future<checkpoint_outcome> last_;
  // of the last failure, without numbers; empty: the last one was written
  std::string reason_;
  int unreported_ = 0; // checkpoints that the reason has cost since the last report
  std::string removal_reason_; // reported last, without numbers
};

/// Makes the checkpoint folder, locks the folder with `lock`, and removes unfinished
/// checkpoints. Returns one sentence if checkpoints cannot go to the folder, else an
/// empty text. A folder that is a checkpoint itself is an error. So is a folder with
/// checkpoints, unless --resume names this folder, or its newest checkpoint. So is an
/// entry of the folder that the run would replace, unless the entry is a broken
/// checkpoint or an empty folder. No other troupe program writes to the folder while
/// `lock` lives.
/// \pre !o.folder.empty(), and `plan` writes checkpoints
std::string checkpoint_folder_error(const checkpoint_options& o, const run_plan& plan,
                                    folder_lock& lock);

} // namespace troupe
