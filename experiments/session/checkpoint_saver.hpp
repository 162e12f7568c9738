// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/checkpoints/checkpoint_folder.hpp"
#include "experiments/options/checkpoint_options.hpp"
#include "kernels/folder_lock.hpp"

#include <functional>
#include <future>
#include <string>

namespace troupe {

/// Writes a run's checkpoints on a thread of their own, while the run goes on; one
/// waits for the one before it. A reason why one cannot be written is told once, and
/// then how many more it has cost.
class checkpoint_saver {
public:
  /// \param plan outlives it \param complain told what could not be written
  checkpoint_saver(const checkpoint_options& o, const run_plan& plan,
                   std::function<void(const std::string&)> complain);

  /// Waits until all is written.
  ~checkpoint_saver();

  checkpoint_saver(const checkpoint_saver&) = delete;
  checkpoint_saver& operator=(const checkpoint_saver&) = delete;

  void save(training_copies all);
  void wait();

private:
  void note(const std::string& wrong);
  void count_failures();

  const checkpoint_options& options_;
  const run_plan& plan_;
  std::function<void(const std::string&)> complain_;
  std::future<std::string> last_;
  std::string reason_; // why the last one was not written, without numbers
  int untold_ = 0;     // checkpoints that it has cost since it was told
};

/// Why checkpoints cannot go to a folder, which is made; empty if they can. Nobody else
/// writes there while `lock` lives.
std::string refusal_of_folder(const checkpoint_options& o, folder_lock& lock);

} // namespace troupe
