// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <CLI/CLI.hpp>

#include <istream>
#include <stdexcept>
#include <string>
#include <vector>

namespace troupe {

/// A mistake in a file of options: one sentence. The sentence begins with the place, as
/// "line 3, column 1: ", unless the file is no text.
struct config_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Reads a file of options in TOML: an option and its value, or a list of values.
/// Numbers keep their digits, which the option checks. Sections, empty lists, unknown
/// options, options of the command line alone such as --help, and an option that
/// appears twice are refused. So is a list of several values for a flag.
class config_reader : public CLI::ConfigTOML {
public:
  /// \param app the application whose options the file sets; outlives this object
  explicit config_reader(const CLI::App& app) : app_(app) {}

  /// Parses a whole file. Returns the names of options without dashes, and the texts of
  /// their values, in the order of the file.
  /// \throws config_error if the file breaks a rule above; values are not checked here
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;

private:
  const CLI::App& app_;
};

/// One sentence if `path` is no regular file that this process may read; else an empty
/// text. The content is not checked.
std::string read_error(const std::string& path);

} // namespace troupe
