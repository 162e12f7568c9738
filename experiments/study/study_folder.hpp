// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/study/study_plan.hpp"
#include "kernels/folder_lock.hpp"

#include <tl/expected.hpp>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

// The folder of a study: study.json has the plan, runs/00001.json the results of each
// run that ended. Each file is written whole or not at all.

namespace troupe {

/// How a run of a study ended.
struct study_result {
  /// "finished", "failed", "refused" (validity has an error), or "ended" (by a signal).
  std::string ending;
  std::string error;   ///< One sentence; empty if the run finished.
  std::string results; ///< The text of results.json; empty if there is none.

  /// True if the run need not be tried again. A refusal may depend on files and on free
  /// memory, and costs no time.
  bool is_final() const { return ending == "finished"; }
};

class study_folder {
public:
  /// Makes a folder for a new study, and writes the plan. The error is one sentence.
  /// \param folder of --report; empty: a new folder in runs
  static tl::expected<study_folder, std::string>
  make(const std::filesystem::path& folder, const study_plan& plan);

  /// Opens the folder of a study that was cut short. The error is one sentence.
  static tl::expected<study_folder, std::string>
  open(const std::filesystem::path& folder);

  const std::filesystem::path& path() const { return path_; }
  const study_plan& plan() const { return plan_; }

  /// The kept result of a run, if the run finished.
  /// A file that is no result of this run counts as absent.
  std::optional<study_result> kept(std::size_t run) const;

  /// Keeps a result. Returns one sentence about a failure, else an empty text.
  std::string keep(std::size_t run, const study_result& result) const;

  /// Writes a file of the study. Returns one sentence about a failure, else an empty
  /// text.
  std::string write(const std::string& name, const std::string& text) const;

private:
  study_folder(std::filesystem::path path, study_plan plan);

  std::filesystem::path file_of(std::size_t run) const;
  std::string lock();

  std::filesystem::path path_;
  study_plan plan_;
  std::unique_ptr<folder_lock> lock_ = std::make_unique<folder_lock>();
};

} // namespace troupe
