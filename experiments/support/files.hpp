#pragma once

#include "experiments/support/results.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace troupe {

/// Of each rank in a trace: what viewers open with ease.
inline constexpr std::int64_t actions_in_trace = 10'000;

/// The files that a program leaves behind: weights and a trace as soon as a run is
/// over, the results of all runs at the end. Each is written whole or not at all.
class output_files {
public:
  /// \param o outlives the files
  explicit output_files(const options& o) : options_(o) {}

  /// Makes the folder for the report and tries every other place, before hours of
  /// training go to waste; empty if all can be written, else the sentence for the user.
  std::string refusal() const;

  /// These return what went wrong, if anything.
  std::string write_weights(const run_request& request, const run_result& result,
                            bool only_run);
  std::string write_trace(const run_request& request, const run_result& result);
  std::string write_results(const std::string& text); ///< To standard output too.

  /// Where the files are, for the last line; empty if there are none.
  std::string summary() const;

private:
  std::string note(const std::filesystem::path& path, const std::string& wrong);

  const options& options_;
  std::vector<std::filesystem::path> written_;
  bool cuts_traces_ = false;
};

} // namespace troupe
